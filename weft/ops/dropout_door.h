// What every op with dropout asks of its address. For ops' own .cpp files.
#pragma once

#include "weft/ops/door.h"
#include "weft/tensor/args.h"

namespace weft::ops {

/// x [s, b, h]; without dropout any shape and no address will do.
void check_dropout(const Door& door, const Tensor& x, const DropoutArgs& how);
void check_probability(const Door& door, float probability);

}  // namespace weft::ops
