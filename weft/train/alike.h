// Ranks that are started one by one are one run only where all were asked for the same.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/train/config.h"

namespace weft {

/// Fails on all ranks alike where two were started with different settings, and names the first of them.
/// Each may have its own device, threads, logs, and names of files that it reads. Collective.
void must_be_alike(const TrainConfig& mine, Communicator& world);

}  // namespace weft
