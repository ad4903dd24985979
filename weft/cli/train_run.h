// weft train, for real: a device, ranks, sinks, and the loop.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weft/cli/environment.h"
#include "weft/train/config.h"

namespace weft::cli {

/// How what is logged calls settings.
using Wording = std::function<std::string(std::string_view)>;

/// A rank's device gets its share of the processors: of those that a launcher bound it to, or of all.
int threads_of_a_rank(const RunConfig& run, const Launched& launched, int ranks);

/// Runs what complete settings say: as many thread ranks, or this process's rank of what MPI started. Returns
/// an Exit as a number.
int run_training(const TrainConfig& config, const Launched& launched, Wording wording);

}  // namespace weft::cli
