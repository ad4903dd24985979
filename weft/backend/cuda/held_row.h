// Rows of logits that a block keeps in its shared memory, so that they are read once.
#pragma once

#include <cstdint>

#include "weft/tensor/tensor.h"

namespace weft::cuda {

/// As many as leave room for two blocks on a multiprocessor of 228 KiB.
inline constexpr std::int64_t most_held = 55 * 1024;

/// Shared memory of a block that keeps a row; 0: it cannot, since the row is longer, or no whole vectors of
/// halves.
std::int64_t bytes_to_hold_row(const Tensor& logits);

}  // namespace weft::cuda
