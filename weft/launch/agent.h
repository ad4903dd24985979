// A node's side of a job: starts, watches and stops its workers as the coordinator says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "weft/launch/group.h"
#include "weft/launch/lifeline.h"
#include "weft/launch/message.h"
#include "weft/launch/options.h"
#include "weft/launch/ward.h"
#include "weft/launch/watch.h"

namespace weft::launch {

class Agent {
 public:
  struct Work {
    /// What this node runs in a round: one at least.
    std::function<std::vector<Worker>(const Begin&)> workers;
    /// Whatever grows while the job gets on; -1 where nothing does.
    std::function<std::int64_t()> progress;
    double grace = 25;
    std::set<int> stopped_codes = {};  // of workers that stopped on purpose: no failure
    /// What the workers of this round say of themselves; nothing where nobody watches.
    std::function<std::vector<PulseReading>(int round)> pulses = {};
    HangRules hang = {};
    /// Where ranks on other machines say it instead, and the word that they know; -1: nowhere.
    int ward = -1;
    std::string ward_token = {};
    /// Where ranks hold a line that another launcher starts on this machine; -1: nowhere.
    int lives = -1;
    /// Puts right who failed and what it said, where another launcher stands between; `seen`: the rank that
    /// is known to be the first, or -1.
    std::function<void(Failure&, int seen)> explain = {};
    /// That launcher tells of a lost rank and then waits for the others, as srun does.
    bool waits_for_others = false;
    /// Where it put a rank, on the host that it named, if any; nothing: ranks are here.
    std::function<Whereabouts(int rank, std::string_view host)> where = {};
  };
  struct Ways {
    Loop& loop;
    Group::Consoles consoles;
    std::function<void(const Message&)> tell;  // to the coordinator; must not call back
    std::function<void(int code, const std::string& report)> finish;
    std::function<void()> stopped_alone = {};  // after cut_off(), when nothing runs any more
  };
  Agent(Work work, Ways ways);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void heard(const Message& message);
  /// The first of a signal that ends the job is told to the coordinator, which stops all; a second one kills.
  void leave(int signal);
  /// To the workers, and nothing else happens.
  void forward(int signal);
  /// Nobody says any more what to do: workers are stopped, soon enough for others to begin without us, or in
  /// the grace of a signal that ended this node; and stopped_alone() follows.
  void cut_off();
  bool working() const { return group_ != nullptr; }
  bool stopping() const { return stopping_; }
  /// Our own children, which nobody else may reap.
  std::vector<pid_t> processes() const;

 private:
  void begin(const Begin& message);
  void stop(const Stop& message);
  void worker_ended(const Ended& ended);
  void all_ended();
  void cannot_start(int rank, const std::string& why);
  void rank_lost(const Lifelines::Loss& loss);
  void add_what_was_seen(Failure& failure) const;
  void look();
  bool overhears_failure();
  bool on_purpose(const End& end) const;
  End end_of(const Ended& ended) const;
  bool misses_machine(const std::vector<PulseReading>& ranks, double now);
  Failure failure_of(const Ended& ended) const;
  void put_in_place(Failure& failure) const;
  Whereabouts where(int rank, const std::string& host) const;
  Doing doing_here(const PulseReading& rank, double now) const;
  void tell_paces(const std::vector<PulseReading>& ranks, double now);

  Work work_;
  Ways ways_;
  std::unique_ptr<Keeper> keeper_;  // from the first round on
  std::unique_ptr<Group> group_;
  std::optional<Watch> watch_;
  std::optional<Ward> ward_;
  std::optional<Lifelines> lives_;
  std::optional<Lifelines::Loss> lost_;  // the first of this round
  std::uint64_t look_ = 0, end_ranks_ = 0;
  double pace_told_ = 0;
  bool still_ = false, silence_told_ = false;
  int round_ = 0, status_ = 0, status_rank_ = 0;
  bool stopping_ = false, told_to_stop_ = false, failed_ = false, leaving_ = false, alone_ = false;
};

/// How a supervisor's run ends: what workers left running is killed, and what they said is out.
void wind_up(const Agent& agent, Group::Consoles consoles);

}  // namespace weft::launch
