// Who hangs and who is slow, from what ranks say of themselves. No clock, no processes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/base/pulse.h"
#include "weft/launch/message.h"
#include "weft/launch/options.h"

namespace weft::launch {

/// A node's ranks. All ranks of a job wait for each other in every step, so where one hangs all fall still:
/// still is a node that none of its ranks has moved on for longer than the limit. A watch that was itself
/// held up blames nobody.
class Watch {
 public:
  explicit Watch(HangRules rules) : rules_(rules) {}
  struct Stillness {
    bool still = false;
    double seconds = 0, limit = 0;  // since when, and what would be too long
  };
  /// `now` is on the clock of the readings.
  Stillness look(const std::vector<PulseReading>& ranks, double now);
  /// How often look() wants to be called.
  double period() const;

 private:
  double limit_of(const PulseReading& rank) const;
  HangRules rules_;
  double began_ = 0, looked_ = 0, alive_ = 0;
  std::map<Section, double> longest_;  // stillness that ended by itself
};

/// Whether all others have waited for seconds now, as they do for ranks that are gone.
bool all_wait_but(const std::set<int>& ranks_gone, const std::vector<PulseReading>& all, double now);

/// What a rank does, as it is told to the coordinator.
Doing doing_of(const PulseReading& reading, int round, double now);

/// What a person reads of a job that hangs: who is missing, and where every other waits.
struct Hang {
  int rank = 0;                    // the one that is missing, or the first
  std::string what;                // of that one
  std::vector<std::string> lines;  // of the others
};
Hang hang_of(const std::vector<Doing>& ranks, double limit);

/// Compares ranks that do the same work over windows of time, and a rank without company with itself at its
/// best.
class Paces {
 public:
  explicit Paces(double window) : window_(window) {}
  /// Sentences about ranks that were slower by a fifth in two windows in a row; each is said once, and again
  /// after it was quick.
  std::vector<std::string> note(const Pace& pace, double now);
  void forget() { ranks_.clear(); }

 private:
  struct Rank {
    Pace first, last;  // of the window
    double since = 0;
    double pace = 0, best = 0;  // seconds of work a step; 0: not known yet
    int windows = 0, slow = 0;  // slow: in a row
    bool said = false;
  };
  std::vector<std::string> judge(double now);
  double usual_for(int rank) const;
  double window_;
  std::map<int, Rank> ranks_;
};

}  // namespace weft::launch
