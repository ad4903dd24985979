// What became of a job, read from what a cluster says of its pods.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/tree.h"

namespace weft::jobs {

/// Pending: no pod works yet; running: one does, or will again; the others are an end.
enum class State : std::uint8_t { pending, running, succeeded, error };
std::string_view name(State);

struct Pod {
  std::string name, phase, node;
  std::string reason;  // why it does not work, or how it ended; empty: it works, or is done
  std::string ended;   // when its container failed last; empty: it has not
  std::int64_t restarts = 0;
  bool again = false;     // it was started again since: its last words are those of the container before
  bool launches = false;  // an MPIJob's launcher: how it ends, the job does
};

struct PodsStatus {
  State state = State::pending;
  std::string reason;
  std::vector<Pod> pods;  // by name
  /// Of the pods, whichever failed first; -1: none.
  int failed = -1;
};

/// `list` is `kubectl get pods,jobs.batch -l weft/job=NAME -o json`. Fails with Kind::data for what is no
/// list.
PodsStatus seen_in(const Tree& list);
/// Its state, its pods a line each, and why.
std::string told(const PodsStatus& seen, const std::string& job);

/// Of `kubectl get events -o json`: those of the job and of its pods, a line each, the oldest first.
std::string events_told(const Tree& list, const std::string& job);
/// Of the same list as the status: what each pod asks for, and all of them.
std::string resources_told(const Tree& list);

/// "exit code 3: saved, and stopped by a signal": what weft means by its codes.
std::string words_of_code(std::int64_t code);

}  // namespace weft::jobs
