// A pool's word to the watcher: from here on in the stream, this is a block, or is none any more. Its twin
// beside the kernels says nothing.
#pragma once

#include <cuda_runtime.h>

#include "tests/support/gpu/emulated.h"

namespace gpu {

/// Whether this is a GPU.
inline constexpr bool real = false;

inline constexpr bool built_for_warpgroups = true;

/// Bytes that the library of products may use, all of which the watcher looks at.
inline constexpr std::int64_t product_workspace = 4096;

/// Bytes of a page that copies travel in: few, so that pages are used again.
inline constexpr std::size_t staging_page = 16 << 10;

/// f(stream) says it, at its turn.
struct Lent {
  void* at;
  std::int64_t bytes;
  void operator()(cudaStream_t stream) const {
    emulated::enqueue(stream, [it = *this] { it.mark(emulated::Touch::allocate); });
  }
  void mark(emulated::Touch how) const {
    emulated::touch(at, std::size_t(bytes), how);
    emulated::spoil(at, std::size_t(bytes));
  }
};
struct TakenBack {
  void* at;
  std::int64_t bytes;
  void operator()(cudaStream_t stream) const {
    emulated::enqueue(stream, [it = Lent{at, bytes}] { it.mark(emulated::Touch::release); });
  }
};

}  // namespace gpu
