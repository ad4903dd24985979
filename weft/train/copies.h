// Ranks that hold the same weights must hold the same bits.
#pragma once

#include <string>

#include "weft/train/replica.h"

namespace weft {

/// "data-parallel ranks hold different bits of layers.0.mlp.up.weight", the same on all ranks of a circle
/// that differ; empty where all agree. Collective. Weights that tensor-parallel ranks hold whole are compared
/// too.
std::string copies_that_differ(const Replica& replica);

}  // namespace weft
