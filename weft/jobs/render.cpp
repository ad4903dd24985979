// The pod template is the file's own but for the command, the port, the shutdown and what names need.
#include "weft/jobs/render.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/jobs/render_parts.h"

namespace weft::jobs {
namespace {

constexpr int port = 29500;
constexpr int usual_grace = 60, least_grace = 10,
              margin = 5;  // seconds; margin: for the launcher to end after its workers
constexpr const char* files_volume = "weft-files";

/// Seconds that a pod has from SIGTERM to its end.
int grace_of(const Job& job) {
  const Tree* spec = job.pod.find("spec");
  const Tree* said = spec != nullptr ? spec->find("terminationGracePeriodSeconds") : nullptr;
  if (said == nullptr) return usual_grace;
  int out = 0;
  const std::string& word = said->text;
  const auto [stop, wrong] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (wrong != std::errc{} || stop != word.data() + word.size() || out < least_grace)
    fail(Kind::usage, "job: spec.worker.template.spec.terminationGracePeriodSeconds is '", word,
         "', and saving needs ", least_grace, " s at least");
  return out;
}

std::string pod_host(const Job& job, Objects objects) {
  const bool in_a_set = objects == Objects::jobset || objects == Objects::trainjob;
  return in_a_set ? text(job.name, "-node-0-0.", job.name) : text(job.name, "-0.", job.name);
}

std::string nodes_word(const Job& job) {
  return job.elastic ? text(job.elastic->least, ":", job.elastic->most) : std::to_string(job.nodes);
}

Tree& list_in(Tree& map, const char* key) {
  Tree& out = map[key];
  if (out.is == Tree::Is::none) out = Tree::list({});
  return out;
}

void mount_files(Tree& spec, Tree& container, const Job& job) {
  list_in(spec, "volumes")
      .items.push_back(Tree::map(
          {{"name", files_volume}, {"configMap", Tree::map({{"name", text(job.name, "-files")}})}}));
  list_in(container, "volumeMounts")
      .items.push_back(
          Tree::map({{"name", files_volume}, {"mountPath", files_folder}, {"readOnly", Tree::yes(true)}}));
}

/// A mistake in the flags, or a result that no restart betters, ends the job; a node that is drained costs
/// nothing.
Tree failure_policy() {
  const Tree codes = Tree::list({Tree::number(2), Tree::number(16), Tree::number(17)});
  return Tree::map(
      {{"rules",
        Tree::list({Tree::map({{"action", "FailJob"},
                               {"onExitCodes", Tree::map({{"operator", "In"}, {"values", codes}})}}),
                    Tree::map({{"action", "Ignore"},
                               {"onPodConditions", Tree::list({Tree::map({{"type", "DisruptionTarget"},
                                                                          {"status", "True"}})})}})})}});
}

/// Where a word of the program names a file that travels, by its last part: where it lies in the pods.
std::string where_it_travels(const std::string& word, const Rendering& how) {
  const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
  const std::size_t from = equals == std::string::npos ? 0 : equals + 1;
  const std::string last = std::filesystem::path(word.substr(from)).filename().string();
  return how.files.contains(last) ? text(word.substr(0, from), files_folder, "/", last) : word;
}

}  // namespace

int most_nodes(const Job& job) { return job.elastic ? job.elastic->most : job.nodes; }

int restarts(const Job& job) { return job.backoff.value_or(3); }

Tree metadata_of(const Job& job, const std::string& name) {
  Tree out;
  out["name"] = name;
  if (!job.space.empty()) out["namespace"] = job.space;
  Tree labels = job.labels;
  labels[name_label] = job.name;
  // Kueue's way of naming a queue; a cluster without it takes it for any label.
  if (!job.queue.empty()) labels["kueue.x-k8s.io/queue-name"] = job.queue;
  out["labels"] = std::move(labels);
  if (!job.annotations.pairs.empty()) out["annotations"] = job.annotations;
  return out;
}

Tree header(const char* version, const char* kind, Tree metadata) {
  return Tree::map({{"apiVersion", version}, {"kind", kind}, {"metadata", std::move(metadata)}});
}

Tree& worker_in(Tree& spec) {
  std::vector<Tree>& all = spec["containers"].items;
  const auto named = std::ranges::find_if(all, [](const Tree& c) {
    const Tree* name = c.find("name");
    return name != nullptr && name->text == "worker";
  });
  return named == all.end() ? all.front() : *named;
}

Tree pod_of(const Job& job, const Rendering& how, const std::vector<std::string>& words) {
  Tree pod = job.pod;
  pod["metadata"]["labels"][name_label] = job.name;
  Tree& spec = pod["spec"];
  Tree& container = worker_in(spec);
  if (container.find("name") == nullptr) container["name"] = "worker";
  if (!how.image.empty()) container["image"] = how.image;
  container.erase("args");
  container["command"] = Tree::words(job.debug ? job.debug->command : words);
  if (job.debug && job.debug->skips_init) spec.erase("initContainers");
  if (!how.files.empty()) mount_files(spec, container, job);
  if (!how.priority_class.empty()) spec["priorityClassName"] = how.priority_class;
  spec["terminationGracePeriodSeconds"] = Tree::number(grace_of(job));
  spec["restartPolicy"] = job.restarts.empty() ? "Never" : job.restarts.c_str();
  return pod;
}

std::vector<std::string> weft_words(const Job& job, const Rendering& how) {
  std::vector<std::string> out{"weft"};
  for (std::string& word : launch_words(job, how)) out.push_back(std::move(word));
  for (const std::string& word : job.words) out.push_back(where_it_travels(word, how));
  return out;
}

Tree job_spec(const Job& job, const Rendering& how) {
  Tree spec;
  spec["completionMode"] = "Indexed";
  for (const char* key : {"completions", "parallelism"}) spec[key] = Tree::number(most_nodes(job));
  spec["backoffLimit"] = Tree::number(job.debug ? 0 : job.backoff.value_or(6));
  if (job.restarts != "OnFailure" && !job.debug) spec["podFailurePolicy"] = failure_policy();
  spec["template"] = pod_of(job, how, weft_words(job, how));
  return spec;
}

namespace {

std::vector<Tree> as_job(const Job& job, const Rendering& how) {
  Tree service = header("v1", "Service", metadata_of(job, job.name));
  // Names must be found before all pods are ready: that they become ready waits for it.
  service["spec"] =
      Tree::map({{"clusterIP", "None"},
                 {"publishNotReadyAddresses", Tree::yes(true)},
                 {"selector", Tree::map({{name_label, job.name}})},
                 {"ports", Tree::list({Tree::map({{"name", "rendezvous"}, {"port", Tree::number(port)}})})}});
  Tree object = header("batch/v1", "Job", metadata_of(job, job.name));
  object["spec"] = job_spec(job, how);
  object["spec"]["template"]["spec"]["subdomain"] = job.name;
  return {std::move(service), std::move(object)};
}

Tree files_of(const Job& job, const Rendering& how) {
  Tree out = header("v1", "ConfigMap", metadata_of(job, text(job.name, "-files")));
  for (const auto& [name, content] : how.files) out["data"][name] = content;
  return out;
}

void note(const Job& job, const Rendering& how, std::vector<std::string>& notices) {
  notices.insert(notices.end(), job.notices.begin(), job.notices.end());
  if (how.image.empty())
    notices.emplace_back("the image is the job file's own, and weft must be in it; --image names another");
  for (const std::string& word : job.words)
    if (const std::string there = where_it_travels(word, how); there != word)
      notices.push_back(text(word, " travels, and is ", there, " in the pods"));
  if (job.priority && how.priority_class.empty())
    notices.push_back(text("not carried over: spec.scheduler.t9kScheduler.priority ", *job.priority,
                           " (Kubernetes has classes for it; name the cluster's with --priority-class)"));
}

/// What a cluster calls its pods, with five letters that it makes up.
void must_fit_names(const Job& job, Objects objects) {
  constexpr std::size_t longest = 63;
  const std::string pod =
      objects == Objects::mpijob
          ? text(job.name, "-launcher-abcde")
          : text(job.name, objects == Objects::job ? "-" : "-node-0-", most_nodes(job) - 1, "-abcde");
  if (pod.size() > longest)
    fail(Kind::usage, "job: metadata.name: a pod would be called ", pod, ", which has ", pod.size(),
         " letters, and a cluster takes ", longest);
}

std::vector<Tree> objects_of(const Job& job, const Rendering& how) {
  switch (how.objects) {
    case Objects::jobset:
      return as_jobset(job, how);
    case Objects::trainjob:
      return as_trainjob(job, how);
    case Objects::mpijob:
      return as_mpijob(job, how);
    case Objects::job:
      break;
  }
  return as_job(job, how);
}

}  // namespace

std::vector<std::string> launch_words(const Job& job, const Rendering& how) {
  std::vector<std::string> out{"launch"};
  const auto add = [&](const char* name, const auto& value) { out.insert(out.end(), {name, text(value)}); };
  if (how.objects == Objects::mpijob) {
    add("--hostfile", "/etc/mpi/hostfile");
    add("--launcher", "ssh");
  } else {
    add("--nnodes", nodes_word(job));
    add("--nproc-per-node", job.slots);
    if (most_nodes(job) > 1) add("--master-addr", pod_host(job, how.objects));
    if (most_nodes(job) > 1) add("--master-port", port);
  }
  add("--rdzv-id", job.name);
  add("--max-restarts", restarts(job));
  add("--shutdown-timeout", grace_of(job) - margin);
  if (!job.python) out.emplace_back("--no-python");
  return out;
}

std::vector<Tree> render(const Job& job, const Rendering& how, std::vector<std::string>& notices) {
  if (how.objects == Objects::mpijob && job.elastic)
    fail(Kind::usage, "job: spec.elastic: an MPIJob's ranks are a fixed number; render a Job or a JobSet");
  must_fit_names(job, how.objects);
  note(job, how, notices);
  std::vector<Tree> out;
  if (!how.files.empty()) out.push_back(files_of(job, how));
  for (Tree& one : objects_of(job, how)) out.push_back(std::move(one));
  return out;
}

}  // namespace weft::jobs
