// What a run tells of its steps: lines, records, times and memory.
#pragma once

#include <string>
#include <vector>

#include "weft/base/clock.h"
#include "weft/train/lent.h"
#include "weft/train/progress.h"
#include "weft/train/spikes.h"
#include "weft/train/step.h"

namespace weft {

struct TellerSettings {
  LogConfig log;
  bool spiky_loss = false;
  double flops_of_sample = 0;
  std::vector<std::string> losses;  // their names
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
    double tokens = 0;
    void forget() { *this = {}; }
    void add(const StepReport& report);
  };
  report::StepRecord record_of(const StepReport& report, const Interval& sum) const;
  void watch_loss(std::int64_t step, const StepReport& report);
  void tell_memory(std::int64_t step) const;
  void tell_times(std::int64_t step, std::int64_t steps);

  TellerSettings settings_;
  Lent lent_;
  const Progress& progress_;
  Interval interval_, alone_;  // since the last line; since the last step
  SpikeWatch spikes_;
  StepTimers timers_;
};

}  // namespace weft
