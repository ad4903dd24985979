// Reductions over a warp and a block, in a fixed order.
#pragma once

#include <gpu.h>

#include <type_traits>

namespace weft::cuda {

struct Plus {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Greater {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// combine(a, b) must be symmetric; every lane gets the same bits.
template <class T, class Combine>
__device__ __forceinline__ T over_warp(T x, Combine combine) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) x = combine(x, __shfl_xor_sync(~0U, x, by));
  return x;
}

template <class T>
struct ScratchOf {
  T parts[32];
};
using Scratch = ScratchOf<float>;

/// Over a block of 32 warps at most; all threads call it. scratch is used again only after another barrier.
template <class T, class Combine>
__device__ __forceinline__ T over_block(T x, ScratchOf<T>& scratch, std::type_identity_t<T> nothing,
                                        Combine combine) {
  x = over_warp(x, combine);
  const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) scratch.parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = over_warp(lane < warps ? scratch.parts[lane] : nothing, combine);
  __syncthreads();
  return x;
}

}  // namespace weft::cuda
