// The shape of a launch, and what is said of one that the GPU refuses: for gpu.h and its twin.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "weft/base/error.h"

namespace gpu {

struct Shape {
  std::int64_t blocks;
  int threads;
  std::size_t shared = 0;
};

/// Fails with Kind::device. What a kernel does wrong is told later; this is a kernel that never runs.
inline void check_launch(cudaError_t error, const Shape& shape) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // which would be told again
  weft::fail(weft::Kind::device, "cuda: the GPU refuses a launch of ", shape.blocks, " blocks of ",
             shape.threads, " threads with ", shape.shared,
             " bytes of shared memory: ", cudaGetErrorString(error));
}

/// Blocks of a grid of one dimension, which has room for less than two to the 31st.
inline unsigned blocks_of(const Shape& shape) {
  constexpr std::int64_t most = (std::int64_t(1) << 31) - 1;
  check_launch(shape.blocks <= most ? cudaSuccess : cudaErrorInvalidConfiguration, shape);
  return unsigned(shape.blocks);
}

}  // namespace gpu
