// Launches of a warp for each of something: tokens, rows, experts of a sample.
#pragma once

#include <gpu.h>

#include "weft/backend/cuda/queue.h"

namespace weft::cuda {

inline constexpr int warps = 8, threads = 32 * warps;

__device__ __forceinline__ std::int64_t token_of_warp() {
  return std::int64_t(blockIdx.x) * warps + threadIdx.x / 32;
}
__device__ __forceinline__ int lane_of_warp() { return int(threadIdx.x) % 32; }

template <class Job>
void a_warp_each(Queue& queue, std::int64_t count, void (*kernel)(Job), const Job& job) {
  if (count > 0) gpu::launch(queue, {(count + warps - 1) / warps, threads}, kernel, job);
}

}  // namespace weft::cuda
