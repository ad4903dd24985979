// Numbers that travel as small integers with a scale a block.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// x [n] f32, bf16 or f16 -> packed u8 [packed_bytes(n, how)], as tensor/args.h says.
void pack_blocks_into(const Tensor& packed, const Tensor& x, const BlockCode& how);
/// packed u8 [packed_bytes(n, how)] -> out [n]; with how.accumulate it is added to what out holds.
void unpack_blocks_into(const Tensor& out, const Tensor& packed, const BlockCode& how);

}  // namespace weft::ops
