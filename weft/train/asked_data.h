// The data of a run whose length is given in samples.
#pragma once

#include <cstdint>

#include "weft/train/run_data.h"

namespace weft {

/// As open_run_data(), of at least so many samples of training, whole steps or not, as Megatron has it: a run
/// that goes on by another batch takes other steps of the same samples.
RunData open_asked_data(const DataNeeds& config, std::int64_t asked);

}  // namespace weft
