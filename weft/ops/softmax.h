// Softmax over the last dimension.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// x [.., n] -> y. A row of nothing but -inf becomes zeros.
Tensor softmax(const Tensor& x);

}  // namespace weft::ops
