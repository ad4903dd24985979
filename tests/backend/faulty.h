// Kernels with one mistake each.
#pragma once

#include <cuda_runtime.h>

namespace weft::testing {

enum class Mistake {
  none,
  no_barrier,
  no_barrier_after,
  one_too_far,
  shared_too_far,
  wide_mask,
  narrow_mask,
  divergent,
  never_written,
  no_wait,
  no_barrier_before_refill,
  unaligned,
  two_blocks
};
/// out[b] = sum of row b of x [rows, 256]
void sums(cudaStream_t, Mistake, float* out, const float* x, int rows);
/// x[i] = value, out[i] = x[i]
void fill(cudaStream_t, float* x, float value, int count);
void copy(cudaStream_t, float* out, const float* x, int count);
/// A warp hands x[0] round: out[i] = 2 x[0] + 1, where lanes have read before one of them writes.
void hand_round(cudaStream_t, bool ordered, float* out, const float* x);
/// Two threads of different warps at one word of x: each writes a half of it. Then, with a barrier between or
/// none, one reads the half that the other has written, or all of it, or writes all of it.
enum class Then { nothing, read_half, read_word, write_word };
void share_word(cudaStream_t, Then, bool ordered, float* out, float* x);

}  // namespace weft::testing
