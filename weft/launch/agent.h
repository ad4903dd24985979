// A node's side of a job: starts, watches and stops its workers as the coordinator says.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "weft/launch/group.h"
#include "weft/launch/message.h"

namespace weft::launch {

class Agent {
 public:
  struct Work {
    /// What this node runs in a round; nothing where another node starts it from there.
    std::function<std::vector<Worker>(const Begin&)> workers;
    /// Whatever grows while the job gets on; -1 where nothing does.
    std::function<std::int64_t()> progress;
    double grace = 25;
    std::set<int> stopped_codes = {};  // of workers that stopped on purpose: no failure
    /// Puts right who failed and what it said, where another launcher stands between.
    std::function<void(Failure&)> explain = {};
  };
  struct Ways {
    Loop& loop;
    Group::Consoles consoles;
    std::function<void(const Message&)> tell;  // to the coordinator; must not call back
    std::function<void(int code, const std::string& report)> finish;
  };
  Agent(Work work, Ways ways);

  void heard(const Message& message);
  /// The first of a signal that ends the job is told to the coordinator, which stops all; a second one kills.
  void leave(int signal);
  /// To the workers, and nothing else happens.
  void forward(int signal);
  /// Nobody says any more what to do: workers are stopped, and finish() is not called.
  void cut_off();
  bool working() const { return group_ != nullptr; }
  std::vector<pid_t> processes() const;

 private:
  void begin(const Begin& message);
  void stop(const Stop& message);
  void worker_ended(const Ended& ended);
  void all_ended();
  void cannot_start(const std::string& why);

  Work work_;
  Ways ways_;
  std::unique_ptr<Group> group_;
  int round_ = 0, status_ = 0, status_rank_ = 0;
  bool stopping_ = false, failed_ = false, leaving_ = false, alone_ = false;
};

/// The state of one attempt, as programs can read it: torchrun's contract for a worker.
struct Contract {
  const Begin& begin;
  int local_rank = 0;
  std::string address;
  int port = 0;
  std::string run_id, role;
};
void apply(const Contract& contract, Environment& environment);

}  // namespace weft::launch
