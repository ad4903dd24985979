// weft train, for real: a device, ranks, sinks, and the loop.
#pragma once

#include "weft/cli/environment.h"
#include "weft/train/config.h"

namespace weft::cli {

/// Runs what complete settings say: as many thread ranks, or this process's rank of what MPI started. Returns
/// an Exit as a number.
int run_training(const TrainConfig& config, const Launched& launched);

}  // namespace weft::cli
