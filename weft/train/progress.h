// Where a run stands, and by which plans it goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "weft/data/split.h"
#include "weft/train/curriculum.h"
#include "weft/train/save_facts.h"

namespace weft {

struct Progress {
  BatchSchedule batches;
  Curriculum curriculum;
  RunSchedules schedules;
  std::int64_t steps = 0, first_step = 1;
  Learned learned;                   // from steps that were applied: what the schedules count
  std::int64_t consumed_tokens = 0;  // that were read of all samples
  std::int64_t skipped_samples = 0;
  std::int64_t last_batch = 0;                    // samples of the last step
  std::map<data::Split, std::int64_t> evaluated;  // samples of each set that evaluations have used
  struct Validated {
    std::int64_t step = 0;
    double loss = 0;
  };
  std::optional<Validated> validated;  // the last time
};

}  // namespace weft
