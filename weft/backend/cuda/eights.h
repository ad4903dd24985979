// Numbers of eight bits as kernels round them.
#pragma once

#include <gpu.h>

#include <limits>

#include "weft/backend/cuda/place.h"

namespace weft::cuda {

/// x times scale, or NaN where x is not finite: 0 times that is none.
__device__ __forceinline__ float scaled(float x, float scale) { return fmaf(x, 0.0F, x * scale); }

template <class F8>
__device__ __forceinline__ std::uint32_t pair_of(float low, float high, float low_scale, float high_scale) {
  return gpu::pack_eights<F8>(scaled(low, low_scale), scaled(high, high_scale));
}

__device__ __forceinline__ float greater_finite(float greatest, float x) {
  const float size = fabsf(x);
  return size > greatest && size <= std::numeric_limits<float>::max() ? size : greatest;
}

/// The host's side: where codes lie, or nowhere.
inline unsigned char* codes_of(const Tensor& tensor) {
  return tensor ? static_cast<unsigned char*>(place_of(tensor)) : nullptr;
}

}  // namespace weft::cuda
