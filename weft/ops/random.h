// Initial weights: numbers by place in a matrix that nobody may hold whole.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// out [rows, columns] of the block
void random_normal_into(const Tensor& out, float mean, float deviation, const RandomBlock& block);
/// In [low, high).
void random_uniform_into(const Tensor& out, float low, float high, const RandomBlock& block);

}  // namespace weft::ops
