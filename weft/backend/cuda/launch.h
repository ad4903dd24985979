// A launch as a value: a kernel, its shape and its arguments, for a stream that runs it or for whoever keeps
// it; and what is said of one that the GPU refuses. For gpu.h and its twin.
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

  bool operator==(const Shape&) const = default;
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

/// Arguments lie where the launch was made, so it is over when that returns.
struct Launch {
  const void* kernel;  // as CUDA's runtime names it
  Shape shape;
  void** arguments;
  const std::size_t* sizes;  // of arguments, which outlive everything
  int count;
};

inline void ask(cudaStream_t stream, const Launch& it) {
  check_launch(cudaLaunchKernel(it.kernel, dim3(blocks_of(it.shape)), dim3(unsigned(it.shape.threads)),
                                it.arguments, it.shape.shared, stream),
               it.shape);
}

/// Runs kernel, later. `where` is a stream, or what ask() is said for.
template <class Where, class... Wanted, class... Given>
void launch(Where&& where, const Shape& shape, void (*kernel)(Wanted...), Given... given) {
  prepare(kernel, shape);
  const auto with = [&](Wanted... values) {
    static constexpr std::size_t sizes[] = {sizeof(Wanted)..., 0};
    void* arguments[] = {&values..., nullptr};
    ask(where, Launch{reinterpret_cast<const void*>(kernel), shape, arguments, sizes, sizeof...(Wanted)});
  };
  with(Wanted(given)...);
}

}  // namespace gpu
