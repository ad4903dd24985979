// What training steps of a configuration take on this machine, beside what the machine can do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/backend/cpu/limits.h"
#include "weft/plan/partners.h"
#include "weft/tensor/meter.h"
#include "weft/train/config.h"

namespace weft::cli {

/// One rank of several, over all timed steps.
struct RankBench {
  std::array<int, 4> place{};                     // along tp, cp, dp, pp
  double work = 0;                                // seconds of its device in kernels
  std::array<double, kinds_of_partners> waits{};  // for whom
};

/// A kind of work, over all timed steps and of all ranks together.
struct KindBench {
  double seconds = 0;
  std::int64_t calls = 0;
  Tally counted;
};

struct TrainBench {
  std::string device;         // that ranks compute on
  int threads = 0;            // of a rank
  double tokens = 0;          // of a step
  double flops = 0;           // of a step: products and the causal half of attention
  std::vector<double> steps;  // seconds, after one step that is not counted
  double first = 0;           // seconds of that one
  /// Seconds of steps whose kernels were timed: the same steps, or of a GPU, which that holds up, others.
  std::vector<double> timed;
  std::array<KindBench, works> kinds{};
  std::vector<RankBench> ranks;   // in their order
  Limits limits;                  // before and after the steps, the better
  MemoryMeter memory;             // of the first rank, with the peaks of the counted steps
  std::int64_t fresh_blocks = 0;  // blocks that counted steps asked of the system
  double loss = 0;                // of the last step

  double median() const;
  double tokens_per_second() const { return tokens / median(); }
  /// Of the product rate measured in this process.
  double share() const { return flops / median() / limits.product_flops; }
};

/// Large enough for the device.
LimitSizes limit_sizes(std::string_view device);
/// Ranks as threads, made-up tokens, Adam and clipping as configured.
TrainBench bench_training(const TrainConfig& config, int steps, const LimitSizes& sizes);

}  // namespace weft::cli
