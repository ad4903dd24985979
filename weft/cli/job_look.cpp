// Asks kubectl, which knows the cluster, its user and their rights; without a cluster, what is kept of runs
// here.
#include "weft/cli/job_look.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/job_here.h"
#include "weft/cli/job_options.h"
#include "weft/cli/job_program.h"
#include "weft/jobs/job.h"
#include "weft/jobs/look.h"
#include "weft/jobs/status.h"

namespace weft::cli {
namespace {

struct Look {
  std::string what, job, kubectl = "kubectl", space;
  std::filesystem::path runs = usual_runs();
  int tail = -1;
  bool here = false, follows = false;
};

using Row = JobOption<Look>;

/// A line of its library's log, such as "E1130 23:43:58.556228 …", that repeats what its last words say.
bool is_log(std::string_view line) {
  return line.size() > 5 && std::string_view("IWEF").find(line[0]) != std::string_view::npos &&
         line.substr(1, 4).find_first_not_of("0123456789") == std::string_view::npos && line[5] == ' ';
}

std::string kubectl_says(std::string_view said) {
  std::string out;
  for (const std::string_view line : split(said, '\n'))
    if (!line.empty() && !is_log(line)) out += text(out.empty() ? "" : " ", trim(line));
  return "kubectl says: " + out;
}

int lines_of(std::string_view who, std::string_view word) {
  int out = 0;
  const auto [stop, wrong] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (wrong != std::errc{} || stop != word.data() + word.size() || out < 0)
    fail(Kind::usage, who, ": '", word, "' is not a number of lines");
  return out;
}

// clang-format off
constexpr std::array rows{
    Row{"namespace", "NAME", "of the job (default: kubectl's)", [](Look& l, std::string_view, std::string_view w) { l.space = w; }},
    Row{"kubectl", "PROGRAM", "which one to ask (default: the one along PATH)", [](Look& l, std::string_view, std::string_view w) { l.kubectl = w; }},
    Row{"here", "", "only runs of this machine; no cluster is asked", [](Look& l, std::string_view, std::string_view) { l.here = true; }},
    Row{"runs", "DIR", "where runs of this machine are kept (default: ~/.local/state/weft/jobs)",
            [](Look& l, std::string_view, std::string_view w) { l.runs = w; }},
    Row{"tail", "N", "logs: only the last N lines of each", [](Look& l, std::string_view who, std::string_view w) { l.tail = lines_of(who, w); }},
    Row{"follow", "", "logs: of a cluster's pods, go on as they do", [](Look& l, std::string_view, std::string_view) { l.follows = true; }},
};
// clang-format on

Look read_look(std::string_view what, Args args) {
  Look out{.what = std::string(what), .job = {}, .space = {}};
  while (!args.empty()) {
    if (args[0].starts_with("--")) {
      take_option<Look>(out, what, rows, args);
      continue;
    }
    if (!out.job.empty())
      fail(Kind::usage, "job ", what, ": '", args[0], "' behind ", out.job, "; one job at a time");
    out.job = args[0];
    args = args.subspan(1);
  }
  if (out.job.empty()) fail(Kind::usage, "job ", what, ": name the job: weft job ", what, " NAME");
  jobs::must_be_a_name(text("job ", what), out.job);
  return out;
}

std::vector<std::string> asked(const Look& look, std::vector<std::string> words) {
  if (!look.space.empty()) words.insert(words.end(), {"--namespace", look.space});
  return words;
}
std::string label(const Look& look) { return "weft/job=" + look.job; }

/// What is kept of a run here, or the sentence that says why there is nothing to look at.
RunHere must_be_here(const Look& look, const std::string& why) {
  if (std::optional<RunHere> run = cli::run_here(look.runs, look.job)) return *run;
  fail(Kind::usage, "job ", look.what, ": ", why, why.empty() ? "no" : ", and no", " run named ", look.job,
       " was started here (", look.runs.string(),
       "): weft job render writes a job for a cluster, weft job run starts one");
}

/// The cluster's objects of the job; none where a run of this machine is to be told of instead.
std::optional<Tree> objects(const Look& look, std::string& why) {
  if (look.here) return std::nullopt;
  const Answer said =
      ask(look.kubectl, asked(look, {"get", "pods,jobs.batch", "-l", label(look), "-o", "json"}));
  if (said.missing) {
    why = text("there is no program ", look.kubectl, " to ask a cluster with");
    return std::nullopt;
  }
  if (said.status != 0) {
    why = kubectl_says(said.err);
    return std::nullopt;
  }
  Tree list = read_yaml(said.out, look.kubectl);
  if (!jobs::items_at(list, "items").empty()) return list;
  why = text("no pod and no Job is labelled ", label(look));
  return std::nullopt;
}

/// How the pod said goodbye.
std::string last_words(const Look& look, const jobs::Pod& pod) {
  std::vector<std::string> words{"logs", pod.name, "--all-containers", "--tail", "10"};
  if (pod.again) words.emplace_back("--previous");
  const Answer said = ask(look.kubectl, asked(look, words));
  if (said.status != 0) return text("its last words are not to be had: ", trim(said.err), "\n");
  std::string out = text("last words of ", pod.name, ":\n");
  for (const std::string_view line : split(trim(said.out), '\n')) out += text("  ", line, "\n");
  return out;
}

std::string status_of(const Look& look, const Tree& list) {
  const jobs::PodsStatus seen = jobs::seen_in(list);
  std::string out = told(seen, look.job);
  const bool ended_well = seen.state == jobs::State::succeeded;
  return seen.failed < 0 || ended_well ? out : out + last_words(look, seen.pods[std::size_t(seen.failed)]);
}

std::string events_of(const Look& look) {
  const Answer said = ask(look.kubectl, asked(look, {"get", "events", "-o", "json"}));
  if (said.status != 0) fail(Kind::usage, "job events: ", kubectl_says(said.err));
  const std::string out = jobs::events_told(read_yaml(said.out, look.kubectl), look.job);
  return out.empty() ? "no events; a cluster forgets them after an hour\n" : out;
}

std::string resources_of(const Look& look, const Tree& list) {
  std::string out = jobs::resources_told(list);
  const Answer used = ask(look.kubectl, asked(look, {"top", "pods", "-l", label(look)}));
  return used.status == 0 ? text(out, "in use now:\n", used.out)
                          : text(out, "what is in use now, the cluster does not say: ", trim(used.err), "\n");
}

int logs_of(const Look& look) {
  std::vector<std::string> words{"logs",
                                 "-l",
                                 label(look),
                                 "--all-containers",
                                 "--prefix",
                                 "--tail",
                                 std::to_string(look.tail),
                                 "--max-log-requests",
                                 "1024"};
  if (look.follows) words.emplace_back("--follow");
  return run_program(look.kubectl, asked(look, words));
}

std::string told_here(const Look& look, const RunHere& run) {
  if (look.what == "status") return status_told(run, look.job);
  if (look.what == "events") return events_told(run, look.job);
  if (look.what == "logs") return logs_told(run, look.tail);
  return resources_told(run);
}

}  // namespace

bool looks_at_jobs(std::string_view word) {
  return word == "status" || word == "events" || word == "logs" || word == "resources";
}

int look_at_job(std::string_view what, Args args) {
  const Look look = read_look(what, args);
  std::string why;
  const std::optional<Tree> list = objects(look, why);
  if (!list) {
    std::cout << told_here(look, must_be_here(look, why));
    return static_cast<int>(Exit::done);
  }
  if (what == "logs") return logs_of(look);
  std::cout << (what == "status"   ? status_of(look, *list)
                : what == "events" ? events_of(look)
                                   : resources_of(look, *list));
  return static_cast<int>(Exit::done);
}

Topic about_looking() { return topic_of<Look>("Status, events, logs and resources", rows); }

}  // namespace weft::cli
