// How many samples a step takes, and how many steps a run has: pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/train/config.h"

namespace weft {

/// Batches of other sizes on the way up.
inline constexpr std::int64_t most_increments = 1'000'000;

/// The global batch as a function of the samples consumed so far.
class BatchSchedule {
 public:
  /// `data_ranks` share a batch; a batch they cannot share evenly is refused, or rounded down if the config
  /// says so.
  BatchSchedule(const BatchConfig&, int data_ranks, std::int64_t sequence);

  std::int64_t at(std::int64_t consumed) const;
  int microbatches_at(std::int64_t consumed) const;
  /// Samples consumed after so many steps from the start.
  std::int64_t consumed_after(std::int64_t steps) const;
  /// The steps of a run on so many samples: whole batches of the final size once the batch has stopped
  /// growing.
  std::int64_t steps_for(std::int64_t samples) const;
  /// The steps after which at least so many samples are consumed.
  std::int64_t steps_until(std::int64_t samples) const;

 private:
  struct Stage {
    std::int64_t from, batch;              // samples consumed, global batch from there on
    std::int64_t steps = 0, consumed = 0;  // when its first step begins, or would, were it not jumped over
  };
  std::int64_t shared(std::int64_t batch) const;
  void walk();

  std::vector<Stage> stages_;
  std::int64_t share_;  // micro batch times data-parallel ranks
  bool round_down_;
  bool stepped_;  // follows --step-batch-size-schedule
};

/// "0:768 250B:1536": thresholds in tokens, cut down to samples.
struct BatchStep {
  std::int64_t tokens, batch;
};
std::vector<BatchStep> read_batch_steps(std::string_view schedule);

/// How far a run goes, and by which batches.
struct RunLength {
  BatchSchedule batches;
  std::int64_t steps = 0;
};

struct EvalCounts {
  std::int64_t valid = 0, test = 0;  // samples
};
EvalCounts eval_counts(const EvalConfig&, std::int64_t steps);

}  // namespace weft
