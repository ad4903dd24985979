// What a run will need, before it starts: one rank of every kind runs two steps on a device that only counts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/model/count.h"
#include "weft/tensor/device.h"
#include "weft/train/config.h"

namespace weft {

/// Opens a device that counts for the one that the run will have. The rooms above know which there are.
using OpenCounter = std::function<std::unique_ptr<Device>()>;

/// Ranks that hold the same: those of one pipeline stage, or of several that came out alike.
struct KindOfRank {
  int first = 0, last = 0;  // pipeline ranks
  int ranks = 0;            // with all their tensor-, context- and data-parallel twins
  MemoryMeter memory;
};

struct Plan {
  ParameterCount parameters;
  std::int64_t tokens = 0;  // of a step, at its largest batch
  double flops = 0;         // of a step, over all ranks
  std::vector<KindOfRank> kinds;
};

/// Of a completed configuration. Fails where numbers are too large to be counted: see bytes_at_least().
Plan plan_run(const TrainConfig& config, const OpenCounter& open);

/// Weights, gradients and optimizer of all ranks that hold one model, in arithmetic that cannot overflow.
double bytes_at_least(const TrainConfig& config);
inline constexpr double most_that_can_be_counted = 1e15;

/// What a rank holds besides tensors: the program, its threads, what libraries keep.
std::int64_t overhead_of_a_process();
/// All tensors of the pipeline ranks from `first` to `last`, in the order of rank numbers.
std::int64_t bytes_of_ranks(const Plan& plan, const ParallelConfig& parallel, int first, int last);

}  // namespace weft
