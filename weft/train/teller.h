// What a run tells of its steps: lines, records, times and memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/base/clock.h"
#include "weft/train/lent.h"
#include "weft/train/progress.h"
#include "weft/train/reruns.h"
#include "weft/train/routing.h"
#include "weft/train/spikes.h"
#include "weft/train/step.h"

namespace weft {

struct TellerSettings {
  LogConfig log;
  bool spiky_loss = false;
  std::int64_t sequence = 0;
  /// Of so many samples at a step.
  std::function<double(std::int64_t step, std::int64_t samples)> flops_of;
  std::vector<std::string> losses;     // their names
  std::vector<std::string> balancing;  // of these, those of routers
};

class Teller {
 public:
  Teller(TellerSettings settings, const Lent& lent, const Progress& progress);
  /// The clock of the first line starts.
  void begin();
  /// After a step, when so many samples are consumed; every rank calls it.
  void tell(std::int64_t step, const StepReport& report, std::int64_t consumed);
  /// Ranks of a pipeline hold different layers and remember different numbers of microbatches, so each is
  /// named.
  void tell_memory_of_ranks() const;
  StepTimers& timers() { return timers_; }

 private:
  /// What adds up between two lines of the log.
  struct Interval {
    Stopwatch watch;
    ByLoss<double> losses;
    std::int64_t steps = 0, applied = 0, skipped = 0, not_finite = 0;
    double tokens = 0, flops = 0;
    void forget() { *this = {}; }
    void add(const StepReport& report);
  };
  report::StepRecord record_of(const StepReport& report, const Interval& sum) const;
  void tell_experts(const RoutingTable& routing, report::StepRecord& into) const;
  void miss_tokens(std::int64_t step);
  void watch_loss(std::int64_t step, const StepReport& report);
  void tell_memory(std::int64_t step) const;
  /// Whether the engine of DeepSpeed's lines has steps of its own to tell of.
  bool engine_apart() const {
    return settings_.log.lines == report::LineForm::deepspeed && settings_.log.engine_interval > 0;
  }
  void tell_times(std::int64_t step, std::int64_t steps);

  TellerSettings settings_;
  Lent lent_;
  const Progress& progress_;
  Interval interval_, alone_, engine_;  // since the last line; since the last step; since the engine's last
  SpikeWatch spikes_;
  RerunStatistics reruns_;
  StepTimers timers_;
  bool misses_tokens_ = false;
};

}  // namespace weft
