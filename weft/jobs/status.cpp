#include "weft/jobs/status.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/jobs/look.h"

namespace weft::jobs {
namespace {

constexpr std::int64_t most_restarts = 1'000'000;  // that a number is taken for

std::vector<const Tree*> objects(const Tree& list) {
  if (const Tree* found = at(list, "items"); found == nullptr || found->is != Tree::Is::list)
    fail(Kind::data, "kubectl: what it said is no list of objects");
  return items_at(list, "items");
}

std::string joined(const std::string& reason, const std::string& message) {
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

std::string ending(const Tree& terminated) {
  const std::string reason = word_at(terminated, "reason");
  std::string out = words_of_code(number_at(terminated, "exitCode"));
  if (!reason.empty() && reason != "Error") out += " (" + reason + ")";
  return joined(out, word_at(terminated, "message"));
}

/// The container's last failure, whether it ended in it or was started again.
void take_failure(Pod& pod, const Tree& container) {
  for (const std::string_view when : {"state", "lastState"}) {
    const Tree* ended = at(container, text(when, "/terminated"));
    if (ended == nullptr || number_at(*ended, "exitCode") == 0) continue;
    const std::string time = word_at(*ended, "finishedAt");
    if (!pod.ended.empty() && pod.ended <= time) continue;
    pod.ended = time.empty() ? "?" : time;
    pod.again = when == "lastState";
    pod.reason = ending(*ended);
  }
}

void take_waiting(Pod& pod, const Tree& container) {
  const Tree* waiting = at(container, "state/waiting");
  if (waiting == nullptr) return;
  const std::string why = joined(word_at(*waiting, "reason"), word_at(*waiting, "message"));
  pod.reason = pod.reason.empty() ? why : pod.reason + "; " + why;
}

Pod pod_in(const Tree& object) {
  Pod out{.name = word_at(object, "metadata/name"),
          .phase = word_at(object, "status/phase"),
          .node = word_at(object, "spec/nodeName"),
          .reason = {},
          .ended = {}};
  for (const std::string_view kind : {"initContainerStatuses", "containerStatuses"})
    for (const Tree* container : items_at(object, text("status/", kind))) {
      take_failure(out, *container);
      take_waiting(out, *container);
      out.restarts += std::clamp<std::int64_t>(number_at(*container, "restartCount"), 0, most_restarts);
    }
  const Tree* labels = at(object, "metadata/labels");
  const Tree* role = labels == nullptr ? nullptr : labels->find("training.kubeflow.org/job-role");
  out.launches = role != nullptr && role->text == "launcher";
  const std::string of_pod = joined(word_at(object, "status/reason"), word_at(object, "status/message"));
  if (!of_pod.empty()) out.reason = of_pod;  // evicted, say: containers know nothing of it
  for (const Tree* condition : items_at(object, "status/conditions"))
    if (out.reason.empty() && word_at(*condition, "type") == "PodScheduled" &&
        word_at(*condition, "status") == "False")
      out.reason = joined(word_at(*condition, "reason"), word_at(*condition, "message"));
  if (out.phase == "Failed" && out.ended.empty()) out.ended = "?";
  return out;
}

/// Whichever failed first; what nobody timed comes last.
int first_failed(const std::vector<Pod>& pods) {
  int out = -1;
  const auto time = [](const Pod& pod) { return pod.ended == "?" ? std::string("~") : pod.ended; };
  for (int i = 0; i < int(pods.size()); ++i)
    if (const Pod& pod = pods[std::size_t(i)]; !pod.ended.empty())
      if (out < 0 || time(pod) < time(pods[std::size_t(out)])) out = i;
  return out;
}

/// "Complete", "Failed" or "Suspended", where the Job says one of them of itself.
const Tree* verdict(const Tree& job) {
  for (const std::string_view type : {"Complete", "Failed", "FailureTarget", "Suspended"})
    for (const Tree* condition : items_at(job, "status/conditions"))
      if (word_at(*condition, "type") == type && word_at(*condition, "status") == "True") return condition;
  return nullptr;
}

std::string of_pod(const Pod& pod) { return joined("pod " + pod.name, pod.reason); }

/// Without a Job that says whether there will be another pod, there will be one while any goes on: an
/// MPIJob's own Job, which starts its launcher again, is its operator's and has no label of ours.
State by_pods(PodsStatus& seen, bool has_job) {
  const auto count = [&](std::string_view phase) {
    return std::ranges::count(seen.pods, phase, &Pod::phase);
  };
  const bool launched =
      std::ranges::any_of(seen.pods, [](const Pod& pod) { return pod.launches && pod.phase == "Succeeded"; });
  if (launched || (!seen.pods.empty() && count("Succeeded") == std::ssize(seen.pods)))
    return State::succeeded;
  if (count("Running") > 0) return State::running;
  if (!has_job && count("Failed") > 0 && count("Pending") == 0) return State::error;
  const auto waits = std::ranges::find_if(seen.pods, [](const Pod& pod) { return !pod.reason.empty(); });
  seen.reason = seen.pods.empty() ? "it has no pod yet" : waits == seen.pods.end() ? "" : of_pod(*waits);
  return State::pending;
}

void judge(PodsStatus& seen, const std::vector<const Tree*>& jobs) {
  for (const Tree* job : jobs) {
    const Tree* said = verdict(*job);
    if (said == nullptr) continue;
    const std::string type = word_at(*said, "type");
    if (type == "Complete") {
      seen.state = State::succeeded;
      return;
    }
    seen.state = type == "Suspended" ? State::pending : State::error;
    seen.reason = joined(word_at(*said, "reason"), word_at(*said, "message"));
    if (seen.state == State::error) return;
  }
  if (!seen.reason.empty()) return;
  seen.state = by_pods(seen, !jobs.empty());
}

std::string padded(std::string word, std::size_t width) {
  word.resize(std::max(width, word.size()), ' ');
  return word;
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::pending:
      return "Pending";
    case State::running:
      return "Running";
    case State::succeeded:
      return "Succeeded";
    case State::error:
      return "Error";
  }
  return "";
}

std::string words_of_code(std::int64_t code) {
  struct Known {
    std::int64_t code;
    std::string_view means;
  };
  constexpr Known known[] = {{2, "a mistake in the flags"},
                             {3, "saved, and stopped by a signal"},
                             {16, "a result was refused, and another machine is to do it again"},
                             {17, "a result was refused"},
                             {127, "there is no such program in the image"},
                             {137, "killed, for memory perhaps"},
                             {143, "told to end"}};
  const auto at = std::ranges::find(known, code, &Known::code);
  return at == std::end(known) ? text("exit code ", code) : text("exit code ", code, ": ", at->means);
}

PodsStatus seen_in(const Tree& list) {
  PodsStatus out;
  std::vector<const Tree*> jobs;
  for (const Tree* object : objects(list)) {
    const std::string kind = word_at(*object, "kind");
    if (kind == "Pod") out.pods.push_back(pod_in(*object));
    if (kind == "Job") jobs.push_back(object);
  }
  std::ranges::sort(out.pods, {}, &Pod::name);
  out.failed = first_failed(out.pods);
  judge(out, jobs);
  if (out.state == State::error && out.failed >= 0) {
    const std::string why = of_pod(out.pods[std::size_t(out.failed)]);
    out.reason = out.reason.empty() ? why : why + " (" + out.reason + ")";
  }
  return out;
}

std::string told(const PodsStatus& seen, const std::string& job) {
  std::string out = text(job, ": ", name(seen.state), seen.reason.empty() ? "" : ": ", seen.reason, "\n");
  std::size_t names = 0, nodes = 0;
  for (const Pod& pod : seen.pods) {
    names = std::max(names, pod.name.size());
    nodes = std::max(nodes, pod.node.size());
  }
  for (const Pod& pod : seen.pods) {
    std::string line = text("  ", padded(pod.name, names), "  ", padded(pod.phase, 9), "  ",
                            padded(pod.node, nodes), "  restarts ", pod.restarts);
    out += line + (pod.reason.empty() ? "" : "  " + pod.reason) + "\n";
  }
  return out;
}

}  // namespace weft::jobs
