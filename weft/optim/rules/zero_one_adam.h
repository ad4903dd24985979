// When ranks that train by 0/1 Adam speak, and what about.
#pragma once

#include <cstdint>

#include "weft/optim/config.h"

namespace weft {

/// A function of the number of updates alone, so that all ranks know it, and a run that goes on. Steps are
/// counted as DeepSpeed counts them, whose first one moves nothing.
class ZeroOneSchedule {
 public:
  explicit ZeroOneSchedule(const ZeroOneConfig& config) : config_(config) {}
  /// Of the next step: second moments learn, from sums of gradients over ranks.
  bool learns() const { return !frozen_ && step_ % variance_interval_ == 0; }
  /// Second moments stay, and ranks go alone.
  bool frozen() const { return frozen_; }
  /// Of the next step, where they go alone: it ends with a meeting.
  bool meets() const { return frozen_ && step_ % local_interval_ == 0; }
  /// Ranks have gone since they met last.
  bool apart() const { return apart_; }
  /// A step was taken. True with the last before second moments stay.
  bool advance();
  void seek(std::int64_t updates);
  int variance_interval() const { return int(variance_interval_); }
  int local_interval() const { return int(local_interval_); }

 private:
  ZeroOneConfig config_;
  std::int64_t step_ = 2;
  std::int64_t variance_interval_ = 1, variance_steps_ = 0;
  std::int64_t local_interval_ = 1, local_steps_ = 0;
  bool frozen_ = false, apart_ = false;
};

}  // namespace weft
