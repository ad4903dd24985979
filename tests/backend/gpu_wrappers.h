// Kernels of one warp around each wrapper of inline PTX. All arrays lie on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace weft::testing {

/// What a wrapper is tried with: lane l has elements l * n .. of each array.
struct Trial {
  cudaStream_t stream = nullptr;
  bool bf16 = false, transposed = false;
};
/// out [32, 2] = both halves of in [32]
void widen_pairs(const Trial& trial, float* out, const std::uint32_t* in);
/// out [32] = in [32, 2] as pairs
void shorten_pairs(const Trial& trial, std::uint32_t* out, const float* in);
/// out [32] = in [32, 2] as pairs of f8e5m2, or of f8e4m3
void pack_eights(bool e5m2, std::uint32_t* out, const float* in);
/// out [32, 4] from the rows of a matrix [16, 32] that row_of(lane) gives
void load_rows(const Trial& trial, std::uint32_t* out, const std::uint16_t* matrix);
/// Where lane's row begins in the matrix of load_rows, in elements.
constexpr int row_of(int lane) { return lane * 5 % 16 * 32 + lane / 16 * 8; }
/// d [32, 4] += a [32, 4] b [32, 2]
void multiply_fragments(const Trial& trial, float* d, const std::uint32_t* a, const std::uint32_t* b);
/// out [2, 128]: what has come of two copies of in [2, 128] when at most one group may be under way, and when
/// none may. Lanes divisible by 3 do not want theirs, and get zeros.
void copy_rows(const Trial& trial, float* out, const float* in);
/// out [4, 32]: of in [32] the sum by exchanges, and by over_warp(); the greatest by either.
void reduce_warp(float* out, const float* in);

}  // namespace weft::testing
