// A row a block: its threads walk over it eight elements at a time.
#pragma once

#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/reduce.h"

namespace weft::cuda {

/// Whole warps for a row, 256 threads at most.
inline int threads_of_row(std::int64_t width) {
  const std::int64_t threads = (chunks_of(width) + 31) / 32 * 32;
  return int(threads < 32 ? 32 : threads > 256 ? 256 : threads);
}

/// Calls f(column, eight) for the eights of a row that this thread walks over. Not several at once: registers
/// for them cost more warps than they bring (measured on an H100).
template <class F>
__device__ __forceinline__ void walk(const Rows& rows, std::int64_t row, F f) {
  const std::int64_t start = start_of(rows, row);
  for (std::int64_t column = threadIdx.x * 8; column < rows.width; column += blockDim.x * 8)
    f(column, read(rows, start, column));
}

}  // namespace weft::cuda
