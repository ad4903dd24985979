// A pool's word to whoever watches memory: on a GPU nobody does. Its twin is in tests/support/gpu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace gpu {

/// Whether this is a GPU.
inline constexpr bool real = true;

/// Whether kernels were compiled for sm_90a, which alone has warpgroup.h.
#ifdef WEFT_CUDA_90A
inline constexpr bool built_for_warpgroups = true;
#else
inline constexpr bool built_for_warpgroups = false;
#endif

/// Bytes that the library of products may use, all of which the watcher looks at.
inline constexpr std::int64_t product_workspace = std::int64_t(32) << 20;

/// Bytes of a page that copies travel in.
inline constexpr std::size_t staging_page = std::size_t(1) << 20;

struct Lent {
  void* at;
  std::int64_t bytes;
  void operator()(cudaStream_t) const {}
};
struct TakenBack {
  void* at;
  std::int64_t bytes;
  void operator()(cudaStream_t) const {}
};

}  // namespace gpu
