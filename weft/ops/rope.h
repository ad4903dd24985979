// Rotary positions: pairs of channels turn by an angle that grows with the position.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// Turns the first channels of x [s, b, .., d]; Turn::backward is the derivative.
void rope_in_place(const Tensor& x, const RopeArgs& how);

}  // namespace weft::ops
