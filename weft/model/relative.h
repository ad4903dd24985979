// Distances in buckets, for biases of relative positions.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/model/config.h"
#include "weft/nn/batch.h"

namespace weft {

/// Tokens of one side of a training sample.
std::int64_t side_length(const ModelConfig& config, Side side);

/// The bucket of every distance in a sequence, query less key, from -(length - 1) to length - 1. Where
/// queries see both ways, keys behind them have the upper half of the buckets; else such keys count as near.
std::vector<std::int32_t> relative_buckets(const RelativeConfig& config, std::int64_t length, bool causal);

}  // namespace weft
