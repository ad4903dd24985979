// weft train, for real: a device, ranks, sinks, and the loop.
#pragma once

#include "weft/train/config.h"

namespace weft::cli {

/// Runs what complete settings say. Returns an Exit as a number.
int run_training(const TrainConfig& config);

}  // namespace weft::cli
