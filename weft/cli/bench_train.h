// What training steps of a configuration take on this machine, beside what the machine can do.
#pragma once

#include <vector>

#include "weft/backend/cpu/limits.h"
#include "weft/backend/cpu/timed.h"
#include "weft/train/config.h"

namespace weft::cli {

struct TrainBench {
  int threads = 0;
  double tokens = 0;                   // of a step
  double flops = 0;                    // of a step: products and the causal half of attention
  std::vector<double> steps;           // seconds, after one step that is not counted
  double first = 0;                    // seconds of that one
  WorkTimes times;                     // of all counted steps
  std::array<Tally, works> work = {};  // of all counted steps
  Limits limits;                       // before and after the steps, the better
  MemoryMeter memory;                  // with the peaks of the counted steps
  std::int64_t fresh_blocks = 0;       // blocks that counted steps asked of the system
  double loss = 0;                     // of the last step

  double median() const;
  double tokens_per_second() const { return tokens / median(); }
  /// Of the product rate measured in this process.
  double share() const { return flops / median() / limits.product_flops; }
};

/// One rank with all of its threads, made-up tokens, Adam and clipping as configured.
TrainBench bench_training(const TrainConfig& config, int steps);

}  // namespace weft::cli
