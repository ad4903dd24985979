// weft job: a cluster's job file, as objects for a cluster without its operator, or run here.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/cli/job_here.h"
#include "weft/cli/job_look.h"
#include "weft/cli/job_options.h"
#include "weft/cli/job_small.h"
#include "weft/cli/launch_program.h"
#include "weft/cli/verbs.h"
#include "weft/jobs/render.h"
#include "weft/jobs/small.h"

namespace weft::cli {
namespace {

struct JobOptions {
  jobs::Rendering how;
  std::string name, space, claim, queue, cpu, memory;
  std::vector<std::pair<std::string, std::string>> variables;
  std::optional<int> backoff;
  std::optional<jobs::Elastic> elastic;
  int nodes = 1, slots = 1;
  std::optional<int> gpus;
  bool small = false;
  std::filesystem::path runs = usual_runs();  // empty: nothing is kept of a run here
  std::vector<std::string> given;
};

int count_of(std::string_view who, std::string_view word, int least = 1) {
  int out = 0;
  const auto [stop, wrong] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (wrong != std::errc{} || stop != word.data() + word.size() || out < least || out > 1 << 16)
    fail(Kind::usage, who, ": '", word, "' is not a whole number from ", least, " to ", 1 << 16);
  return out;
}

/// What Kubernetes takes for processors and memory: 2, 0.5, 500m, 64Gi.
std::string quantity(std::string_view who, std::string_view word) {
  const auto end = std::min(word.find_first_not_of("0123456789."), word.size());
  constexpr std::array units{"", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const std::string_view number = word.substr(0, end);
  const bool some = number.find_first_of("123456789") != std::string_view::npos &&
                    std::ranges::count(number, '.') <= 1 && number.front() != '.' && number.back() != '.';
  if (!some || std::ranges::find(units, word.substr(end)) == units.end())
    fail(Kind::usage, who, ": '", word, "' is no amount above 0 as Kubernetes writes it: 2, 0.5, 500m, 64Gi");
  return std::string(word);
}

void set_objects(JobOptions& a, std::string_view who, std::string_view word) {
  if (word == "job")
    a.how.objects = jobs::Objects::job;
  else if (word == "jobset")
    a.how.objects = jobs::Objects::jobset;
  else if (word == "mpijob")
    a.how.objects = jobs::Objects::mpijob;
  else if (word == "trainjob")
    a.how.objects = jobs::Objects::trainjob;
  else
    fail(Kind::usage, who, ": '", word, "' is not job, jobset, trainjob or mpijob");
}

void add_file(JobOptions& a, std::string_view who, std::string_view word) {
  constexpr std::size_t most = 1 << 20;  // of a ConfigMap
  const std::filesystem::path path(word);
  std::string content = read_file(path);
  if (content.size() > most)
    fail(Kind::usage, who, ": ", word, " has ", content.size(), " bytes, and a ConfigMap takes ", most);
  a.how.files[path.filename().string()] = std::move(content);
}

/// "4", or "2:4" for a number that may change.
void set_nodes(JobOptions& a, std::string_view who, std::string_view word) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos) {
    a.nodes = count_of(who, word);
    return;
  }
  a.elastic = {.least = count_of(who, word.substr(0, colon)), .most = count_of(who, word.substr(colon + 1))};
  a.nodes = a.elastic->most;
  if (a.elastic->least > a.elastic->most)
    fail(Kind::usage, who, ": ", a.elastic->least, " is more than ", a.elastic->most);
}

void add_variable(JobOptions& a, std::string_view who, std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0)
    fail(Kind::usage, who, ": '", word, "' is not NAME=VALUE");
  a.variables.emplace_back(word.substr(0, equals), word.substr(equals + 1));
}

using Row = JobOption<JobOptions>;

// clang-format off
constexpr std::array render_rows{
    Row{"kind", "job|jobset|trainjob|mpijob", "which objects (default job: an Indexed Job and its Service)", set_objects},
    Row{"image", "IMAGE", "of the pods, with weft in it (default: the job file's)",
        [](JobOptions& a, std::string_view, std::string_view w) { a.how.image = w; }},
    Row{"priority-class", "NAME", "of the cluster, for the pods", [](JobOptions& a, std::string_view, std::string_view w) { a.how.priority_class = w; }},
    Row{"file", "PATH", "travels along and lies in /etc/weft/files, a DeepSpeed configuration for one; may be repeated", add_file},
};
constexpr std::array flag_rows{
    Row{"name", "NAME", "of the job", [](JobOptions& a, std::string_view who, std::string_view w) { jobs::must_be_a_name(who, w); a.name = w; }},
    Row{"namespace", "NAME", "of its objects (default: kubectl's)", [](JobOptions& a, std::string_view, std::string_view w) { a.space = w; }},
    Row{"nodes", "N|MIN:MAX", "pods (default 1), or how many may work at a time", set_nodes},
    Row{"slots", "N", "ranks a pod (default 1)", [](JobOptions& a, std::string_view who, std::string_view w) { a.slots = count_of(who, w); }},
    Row{"gpus", "N", "nvidia.com/gpu of each pod (default none)", [](JobOptions& a, std::string_view who, std::string_view w) { a.gpus = count_of(who, w); }},
    Row{"cpu", "N", "processors of each pod, asked for and given", [](JobOptions& a, std::string_view who, std::string_view w) { a.cpu = quantity(who, w); }},
    Row{"memory", "SIZE", "memory of each pod, asked for and given: 64Gi", [](JobOptions& a, std::string_view who, std::string_view w) { a.memory = quantity(who, w); }},
    Row{"env", "NAME=VALUE", "a variable of the pods; may be repeated", add_variable},
    Row{"queue", "NAME", "of Kueue's, for the job to wait in", [](JobOptions& a, std::string_view, std::string_view w) { a.queue = w; }},
    Row{"backoff-limit", "N", "failures that the job survives (default 6, and 3 starts inside the pods)",
        [](JobOptions& a, std::string_view who, std::string_view w) { a.backoff = count_of(who, w, 0); }},
    Row{"claim", "CLAIM:PATH", "a persistent volume claim and where it is mounted", [](JobOptions& a, std::string_view, std::string_view w) { a.claim = w; }},
};
constexpr std::array run_rows{
    Row{"small", "", "a model, batch and length of a few, made-up data, and nothing saved", [](JobOptions& a, std::string_view, std::string_view) { a.small = true; }},
    Row{"runs", "DIR", "where its logs and its end are kept (default: ~/.local/state/weft/jobs)", [](JobOptions& a, std::string_view, std::string_view w) { a.runs = w; }},
};
// clang-format on

/// Takes options off the front of `args`.
JobOptions read_options(Args& args, std::string_view verb) {
  std::vector<Row> rows(run_rows.begin(), run_rows.end());
  if (verb == "render") {
    rows.assign(render_rows.begin(), render_rows.end());
    rows.insert(rows.end(), flag_rows.begin(), flag_rows.end());
  }
  JobOptions out;
  while (!args.empty() && args[0].starts_with("--"))
    out.given.emplace_back(take_option<JobOptions>(out, verb, rows, args));
  return out;
}

bool is_job_file(std::string_view word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

void add_resources(Tree& worker, const JobOptions& a) {
  for (const char* kind : {"requests", "limits"}) {
    if (!a.cpu.empty()) worker["resources"][kind]["cpu"] = a.cpu;
    if (!a.memory.empty()) worker["resources"][kind]["memory"] = a.memory;
  }
  if (a.gpus) worker["resources"]["limits"]["nvidia.com/gpu"] = Tree::number(*a.gpus);
  if (a.variables.empty()) return;
  Tree variables = Tree::list({});
  for (const auto& [name, value] : a.variables)
    variables.items.push_back(Tree::map({{"name", name}, {"value", value}}));
  worker["env"] = std::move(variables);
}

/// A pod for flags alone: memory to share, a volume, and GPUs where they are asked for.
jobs::Job from_flags(const JobOptions& a, Args words) {
  if (a.name.empty())
    fail(Kind::usage, "job render: --name is missing: what the job is called, where no file says it");
  if (a.how.image.empty())
    fail(Kind::usage, "job render: --image is missing: an image with weft in it, where no file names one");
  jobs::Job job{.name = a.name,
                .space = a.space,
                .nodes = a.nodes,
                .slots = a.slots,
                .words = {words.begin(), words.end()},
                .backoff = a.backoff,
                .elastic = a.elastic,
                .queue = a.queue};
  Tree worker = Tree::map({{"name", "worker"}, {"image", a.how.image}});
  add_resources(worker, a);
  Tree mounts = Tree::list({Tree::map({{"name", "shared-memory"}, {"mountPath", "/dev/shm"}})});
  Tree volumes =
      Tree::list({Tree::map({{"name", "shared-memory"}, {"emptyDir", Tree::map({{"medium", "Memory"}})}})});
  if (!a.claim.empty()) {
    const auto colon = a.claim.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == a.claim.size())
      fail(Kind::usage, "job render: --claim: '", a.claim, "' is not CLAIM:PATH");
    const std::string path = a.claim.substr(colon + 1);
    volumes.items.push_back(Tree::map(
        {{"name", "data"}, {"persistentVolumeClaim", Tree::map({{"claimName", a.claim.substr(0, colon)}})}}));
    mounts.items.push_back(Tree::map({{"name", "data"}, {"mountPath", path}}));
    worker["workingDir"] = path;
    // A claim is root's until a pod asks for it as its group's; only once, where it is large.
    job.pod["spec"]["securityContext"] =
        Tree::map({{"fsGroup", Tree::number(jobs::image_user)}, {"fsGroupChangePolicy", "OnRootMismatch"}});
  }
  worker["volumeMounts"] = std::move(mounts);
  job.pod["spec"]["containers"] = Tree::list({std::move(worker)});
  job.pod["spec"]["volumes"] = std::move(volumes);
  return job;
}

jobs::Job from_file(const JobOptions& a, std::string_view file) {
  for (const Row& row : flag_rows)
    if (std::ranges::find(a.given, row.name) != a.given.end())
      fail(Kind::usage, "job render: --", row.name, " is for flags alone, and ", file, " says it itself");
  return jobs::read_job(read_file(file), std::string(file));
}

int run_render(Args args) {
  const JobOptions asked = read_options(args, "render");
  if (args.empty())
    fail(Kind::usage,
         "job render: name a job file, or a program and its flags: weft job render --name n --image i train "
         "gpt …");
  const bool file = is_job_file(args[0]);
  if (file && args.size() > 1)
    fail(Kind::usage, "job render: '", args[1], "' behind ", args[0], "; options stand before the file");
  const jobs::Job job = file ? from_file(asked, args[0]) : from_flags(asked, args);
  std::vector<std::string> notices;
  const std::vector<Tree> objects = jobs::render(job, asked.how, notices);
  for (const std::string& notice : notices) std::cerr << notice << "\n";
  for (std::size_t i = 0; i < objects.size(); ++i)
    std::cout << (i > 0 ? "---\n" : "") << write_yaml(objects[i]);
  return static_cast<int>(Exit::done);
}

/// What is launched here, and what must lie there first.
struct Start {
  std::vector<std::string> words;
  SmallFile file;
};

Start start_here(const jobs::Job& job, const JobOptions& asked, Args args) {
  const int ranks = (job.elastic ? job.elastic->most : job.nodes) * job.slots;
  Start out{.words = {"--nproc-per-node", std::to_string(ranks)}, .file = {}};
  if (job.backoff) out.words.insert(out.words.end(), {"--max-restarts", std::to_string(*job.backoff)});
  if (!job.python) out.words.emplace_back("--no-python");
  out.words.push_back(job.words[0]);
  std::vector<std::string> own(job.words.begin() + 1, job.words.end());
  if (asked.small) {
    if (!is_training(job.words[0], job.python))
      fail(Kind::usage, "job run: --small makes weft's own training small, and ", args[0], " runs ",
           job.words[0], "; leave --small out");
    out.file = small_deepspeed(own, args[0], asked.runs / job.name);
    own = jobs::made_small(own, ranks);
  }
  if (asked.runs.empty() && !out.file.content.empty())
    fail(Kind::usage, "job run: --small writes a small ", out.file.path.filename().string(),
         "; say where with --runs");
  out.words.insert(out.words.end(), own.begin(), own.end());
  out.words.insert(out.words.end(), args.begin() + 1, args.end());
  return out;
}

/// What the launcher says is wrong is said here, so that its code can be kept.
int launched(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  try {
    return launch_verb().run(views);
  } catch (...) {
    return say_failure();
  }
}

/// Its ranks as threads of one process here: as the launcher would on one node.
int run_here(Args args) {
  const JobOptions asked = read_options(args, "run");
  if (args.empty() || !is_job_file(args[0]))
    fail(Kind::usage, "job run: name a job file: weft job run --small job.yaml");
  const jobs::Job job = jobs::read_job(read_file(args[0]), std::string(args[0]));
  for (const std::string& notice : job.notices) std::cerr << notice << "\n";
  if (job.words.empty())
    fail(Kind::usage, "job run: ", args[0],
         ": spec.config.run names no program, and nothing runs in spec.runMode.debug");
  const Start start = start_here(job, asked, args);
  std::cerr << "weft launch " << join(start.words, " ") << "\n";
  if (asked.runs.empty()) return launched(start.words);
  RunRecord record(asked.runs / job.name, start.words);
  if (!start.file.content.empty()) write_atomically(start.file.path, start.file.content);
  std::vector<std::string> words{"--rdzv-id", job.name, "--log-dir", record.logs().string()};
  words.insert(words.end(), start.words.begin(), start.words.end());
  const int status = launched(words);
  record.end(status);
  return status;
}

int run_job(Args args) {
  if (!args.empty() && args[0] == "render") return run_render(args.subspan(1));
  if (!args.empty() && args[0] == "run") return run_here(args.subspan(1));
  if (!args.empty() && looks_at_jobs(args[0])) return look_at_job(args[0], args.subspan(1));
  fail(Kind::usage,
       "job: say render, run, status, events, logs or resources: weft job render job.yaml; weft help job "
       "shows "
       "examples");
}

VerbHelp about_job() {
  return {
      .usage =
          "weft job render [options] FILE|PROGRAM [its flags] | weft job run [--small] [--runs DIR] FILE "
          "[more "
          "flags] | weft job status|events|logs|resources [options] NAME",
      .examples =
          {{"weft job render job.yaml | kubectl apply -f -",
            "a DeepSpeedJob as an Indexed Job and a Service, which need no operator"},
           {"weft job render --kind mpijob job.yaml", "as an MPIJob; jobset and trainjob are others"},
           {"weft job render --name gpt --image weft:1 --nodes 2 --slots 8 --claim data:/data train gpt …",
            "the same from flags alone"},
           {"weft job run --small job.yaml",
            "tries its layout and flags here, on a model of a few layers and made-up data"},
           {"weft job status gpt", "what became of it, by kubectl; without a cluster, of the run here"}},
      .topics = {topic_of<JobOptions>("Rendering", render_rows),
                 topic_of<JobOptions>("Rendering flags alone", flag_rows),
                 topic_of<JobOptions>("Running", run_rows), about_looking()}};
}

}  // namespace

Verb job_verb() {
  return {"job", "a cluster's job file: rendered for a cluster without its operator, run here, looked after",
          run_job, about_job};
}

}  // namespace weft::cli
