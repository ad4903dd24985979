// Walks the file by one list of keys, so that nothing in it is passed over.
#include "weft/jobs/job.h"

#include <charconv>
#include <functional>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/nearest.h"

namespace weft::jobs {
namespace {

constexpr int most_nodes = 1 << 16, most_slots = 1 << 10;

/// A place in the file, with the path that messages name.
struct Spot {
  const std::string& who;
  std::string path;
  const Tree& tree;
  Spot under(const std::string& key, const Tree& value) const {
    return {who, path.empty() ? key : path + "." + key, value};
  }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Kind::usage, who, ": ", path, parts...);
  }
};

struct JobKey {
  std::string_view name;
  std::function<void(const Spot&)> take;
};

/// Every key of a map goes to the one that takes it.
void take_map(const Spot& at, const std::vector<JobKey>& keys) {
  if (at.tree.is == Tree::Is::none) return;
  if (at.tree.is != Tree::Is::map) at.refuse(" is not a map");
  std::vector<std::string_view> names;
  for (const JobKey& key : keys) names.push_back(key.name);
  for (const auto& [name, value] : at.tree.pairs) {
    const Spot here = at.under(name, value);
    bool taken = false;
    for (const JobKey& key : keys) {
      if (key.name != name) continue;
      key.take(here);
      taken = true;
    }
    if (!taken) here.refuse(" is not a key of a DeepSpeedJob", did_you_mean(name, names));
  }
}

std::string word(const Spot& at) {
  if (at.tree.is != Tree::Is::word) at.refuse(" is not one value");
  return at.tree.text;
}

int number(const Spot& at, int least, int most) {
  const std::string said = word(at);
  int out = 0;
  const auto [stop, wrong] = std::from_chars(said.data(), said.data() + said.size(), out);
  if (wrong != std::errc{} || stop != said.data() + said.size() || out < least || out > most)
    at.refuse(" is '", said, "', not a whole number from ", least, " to ", most);
  return out;
}

bool yes(const Spot& at) {
  const std::string said = word(at);
  if (said != "true" && said != "false") at.refuse(" is '", said, "', neither true nor false");
  return said == "true";
}

std::vector<std::string> words(const Spot& at) {
  if (at.tree.is != Tree::Is::list) at.refuse(" is not a list of words");
  std::vector<std::string> out;
  for (const Tree& item : at.tree.items) {
    if (item.is != Tree::Is::word) at.refuse(" holds a list or a map, where words were expected");
    out.push_back(item.text);
  }
  return out;
}

auto into(std::string& to) {
  return [&to](const Spot& at) { to = word(at); };
}
auto into(int& to, int most) {
  return [&to, most](const Spot& at) { to = number(at, 1, most); };
}
void anything(const Spot&) {}

void take_metadata(Job& job, const Spot& at) {
  take_map(at, {{"name",
                 [&](const Spot& s) {
                   job.name = word(s);
                   must_be_a_name(text(s.who, ": ", s.path), job.name);
                 }},
                {"namespace", into(job.space)},
                {"labels", [&](const Spot& s) { job.labels = s.tree; }},
                {"annotations", [&](const Spot& s) { job.annotations = s.tree; }},
                // What a cluster writes into an object that it holds.
                {"creationTimestamp", anything},
                {"generation", anything},
                {"resourceVersion", anything},
                {"uid", anything},
                {"managedFields", anything}});
}

void take_config(Job& job, const Spot& at) {
  std::vector<std::string> python, custom;
  take_map(
      at,
      {{"slotsPerWorker", into(job.slots, most_slots)},
       {"localRank",
        [&](const Spot& s) {
          if (yes(s))
            job.notices.push_back(text("no effect here: ", s.path, " (ranks find LOCAL_RANK themselves)"));
        }},
       {"run",
        [&](const Spot& s) {
          take_map(s, {{"python", [&](const Spot& p) { python = words(p); }},
                       {"customCommand", [&](const Spot& c) { custom = words(c); }}});
        }},
       {"otherArgs",
        [](const Spot& s) {
          if (!words(s).empty())
            s.refuse(" are words for DeepSpeed's launcher, which does not run here; leave them out");
        }},
       {"autotune", [](const Spot& s) {
          if (s.tree.is != Tree::Is::none)
            s.refuse(": DeepSpeed's autotuner does not run here; weft bench train measures a configuration");
        }}});
  if (!python.empty() && !custom.empty())
    at.under("run", at.tree).refuse(" names python and customCommand; leave one out");
  job.python = custom.empty();
  job.words = job.python ? python : custom;
}

void take_elastic(Job& job, const Spot& at) {
  bool enabled = false;
  Elastic e;
  int expected = 0;
  take_map(at, {{"enabled", [&](const Spot& s) { enabled = yes(s); }},
                {"minReplicas", into(e.least, most_nodes)},
                {"maxReplicas", into(e.most, most_nodes)},
                {"expectedReplicas", into(expected, most_nodes)}});
  if (e.most < e.least) at.refuse(".maxReplicas ", e.most, " is below .minReplicas ", e.least);
  if (expected > 0 && (expected < e.least || expected > e.most))
    at.refuse(".expectedReplicas ", expected, " is not from ", e.least, " to ", e.most);
  if (!enabled) return;
  job.elastic = e;
  if (expected > 0 && expected != e.most)
    job.notices.push_back(text("no effect here: ", at.path,
                               ".expectedReplicas (as many nodes work as are there, up to ", e.most, ")"));
}

void take_debug(Job& job, const Spot& at) {
  bool enabled = false;
  Debug debug{.command = {"sleep", "inf"}};
  const auto replica = [&](const Spot& spec) {
    take_map(spec, {{"type",
                     [](const Spot& s) {
                       if (word(s) != "worker") s.refuse(" is '", word(s), "', and there are only workers");
                     }},
                    {"skipInitContainer", [&](const Spot& s) { debug.skips_init = yes(s); }},
                    {"command", [&](const Spot& s) { debug.command = words(s); }}});
  };
  const auto take_enabled = [&](const Spot& s) { enabled = yes(s); };
  take_map(at, {{"enabled", take_enabled},
                {"enable", take_enabled},
                {"replicaSpecs", [&](const Spot& s) {
                   if (s.tree.is != Tree::Is::list) s.refuse(" is not a list");
                   for (std::size_t i = 0; i < s.tree.items.size(); ++i)
                     replica({s.who, text(s.path, "[", i, "]"), s.tree.items[i]});
                 }}});
  if (enabled) job.debug = std::move(debug);
}

void take_worker(Job& job, const Spot& at) {
  take_map(at,
           {{"replicas", into(job.nodes, most_nodes)},
            {"restartPolicy",
             [&](const Spot& s) {
               job.restarts = word(s);
               if (job.restarts == "Always")
                 s.refuse(" is Always, which would start a job that is done again; write OnFailure or Never");
               if (job.restarts != "OnFailure" && job.restarts != "Never")
                 s.refuse(" is '", job.restarts, "', not OnFailure or Never");
             }},
            {"template", [&](const Spot& s) {
               take_map(s, {{"metadata", [&](const Spot& m) { job.pod["metadata"] = m.tree; }},
                            {"spec", [&](const Spot& p) { job.pod["spec"] = p.tree; }}});
             }}});
}

void take_scheduler(Job& job, const Spot& at) {
  take_map(at, {{"t9kScheduler", [&](const Spot& s) {
                   take_map(s, {{"queue", into(job.queue)},
                                {"priority", [&](const Spot& p) { job.priority = number(p, 0, 100); }}});
                 }}});
}

void take_spec(Job& job, const Spot& at) {
  take_map(at,
           {{"config", [&](const Spot& s) { take_config(job, s); }},
            {"worker", [&](const Spot& s) { take_worker(job, s); }},
            {"elastic", [&](const Spot& s) { take_elastic(job, s); }},
            {"scheduler", [&](const Spot& s) { take_scheduler(job, s); }},
            {"runMode",
             [&](const Spot& s) {
               take_map(s, {{"debug", [&](const Spot& d) { take_debug(job, d); }}});
             }},
            {"runPolicy", [&](const Spot& s) {
               take_map(s, {{"backoffLimit", [&](const Spot& b) { job.backoff = number(b, 0, 1 << 20); }}});
             }}});
}

/// The container that runs the job: one of it, with an image.
void must_have_a_worker(const Job& job, const std::string& who) {
  const Tree* spec = job.pod.find("spec");
  const Tree* containers = spec != nullptr ? spec->find("containers") : nullptr;
  const std::string path = ": spec.worker.template.spec.containers";
  if (containers == nullptr || containers->is != Tree::Is::list || containers->items.empty())
    fail(Kind::usage, who, path, " names no container");
  for (const Tree& container : containers->items)
    if (container.is != Tree::Is::map) fail(Kind::usage, who, path, " holds something that is no container");
}

}  // namespace

void must_be_a_name(std::string_view who, std::string_view name) {
  constexpr std::size_t longest = 52;  // with a pod's number behind it still no more than 63
  bool good = !name.empty() && name.size() <= longest && name.front() >= 'a' && name.front() <= 'z' &&
              name.back() != '-';
  for (const char c : name) good = good && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  if (!good)
    fail(Kind::usage, who, ": '", name, "' is no name of a service: at most ", longest,
         " small letters, digits and dashes, a letter first and no dash last");
}

Job job_of(const Tree& file, const std::string& who) {
  Job job;
  std::string version, kind;
  const Spot root{who, "", file};
  if (file.is != Tree::Is::map) fail(Kind::usage, who, ": not a job file: there is no map in it");
  take_map(root, {{"apiVersion", into(version)},
                  {"kind", into(kind)},
                  {"metadata", [&](const Spot& s) { take_metadata(job, s); }},
                  {"spec", [&](const Spot& s) { take_spec(job, s); }},
                  {"status", anything}});
  if (kind != "DeepSpeedJob") fail(Kind::usage, who, ": kind is '", kind, "', and weft reads DeepSpeedJob");
  if (version != "batch.tensorstack.dev/v1beta1")
    fail(Kind::usage, who, ": apiVersion is '", version, "', and weft reads batch.tensorstack.dev/v1beta1");
  if (job.words.empty() && !job.debug)
    fail(Kind::usage, who, ": spec.config.run names no program: python or customCommand");
  must_have_a_worker(job, who);
  return job;
}

Job read_job(std::string_view yaml, const std::string& who) { return job_of(read_yaml(yaml, who), who); }

}  // namespace weft::jobs
