// Ranks that hold the same weights must hold the same bits.
#pragma once

#include <string>

#include "weft/train/replica.h"

namespace weft {

/// "data-parallel ranks hold different bits of layers.0.mlp.up.weight", the same on all ranks of a circle
/// that differ; empty where all agree. Collective. Of weights that are cut along some axes, ranks along the
/// others are compared.
std::string copies_that_differ(const Replica& replica);

}  // namespace weft
