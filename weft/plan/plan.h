// What a run will need, before it starts: one rank of every kind runs two steps and an evaluation on a device
// that only counts.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/model/count.h"
#include "weft/plan/gpu_words.h"
#include "weft/plan/volumes.h"
#include "weft/tensor/device.h"
#include "weft/train/config.h"

namespace weft {

/// Opens a device that counts for the one that the run will have, whose words are said so. The rooms above
/// know which there are.
struct OpenCounter {
  template <std::invocable Opens>
  OpenCounter(Opens opens, SpokenBy by = SpokenBy::hosts) : device(std::move(opens)), spoken_by(by) {}
  std::function<std::unique_ptr<Device>()> device;
  SpokenBy spoken_by;
};

/// Ranks that hold the same: those of one pipeline stage, or of several that came out alike.
struct KindOfRank {
  int first = 0, last = 0;  // pipeline ranks
  int ranks = 0;            // with all their tensor-, context- and data-parallel twins
  MemoryMeter memory;
  std::int64_t training = 0;  // the most at once, where evaluations are left out; these may need more
  std::int64_t on_disk = 0;   // of a rank's optimizer states
  std::int64_t copied = 0;    // for saves that are written in the background, beside all else
  /// At most, where routers send all that they can to this rank's experts; 0 where nothing follows from that.
  std::int64_t crowded = 0;
  /// Where it was asked for: of a rank, in a step at its largest batch, at most; of experts, with even loads.
  Volumes sends;
};

struct Plan {
  ParameterCount parameters;
  std::int64_t tokens = 0;  // of a step, at its largest batch
  double flops = 0;         // of a step, over all ranks
  std::vector<KindOfRank> kinds;
};

/// What is asked of a plan: whether a run has room, or what its ranks send besides, for which some take
/// another step or two.
enum class PlanFor : std::uint8_t { memory, messages };

/// Of a completed configuration that is countable().
Plan plan_run(const TrainConfig& config, const OpenCounter& open, PlanFor what = PlanFor::memory);

/// Weights, gradients and optimizer of all ranks that hold one model, and the least that a microbatch's
/// activations take, in arithmetic that cannot overflow.
double bytes_at_least(const TrainConfig& config);
/// Whether numbers are small enough to be counted, and soon: no machine has what it takes where they are not.
bool countable(const TrainConfig& config);

/// What a rank holds besides tensors: the program, its threads, what libraries keep.
std::int64_t overhead_of_a_process();

}  // namespace weft
