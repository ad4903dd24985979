// Scores that fall with the distance of query and key, as biases that nobody learns.
#pragma once

#include <vector>

#include "weft/base/range.h"
#include "weft/model/config.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// What each head's scores lose with every place between query and key.
std::vector<float> alibi_slopes(const ModelConfig& config);

/// f32 [these heads, 2 sequence - 1]: a column for every distance, query less key, from -(sequence - 1) on.
Tensor alibi_biases(const ModelConfig& config, const Range& heads, Device& device);

}  // namespace weft
