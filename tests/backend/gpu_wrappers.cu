// A warp around each wrapper.
#include "tests/backend/gpu_wrappers.h"

#include <gpu.h>

#include "weft/backend/cuda/reduce.h"
#include "weft/base/half.h"

namespace weft::testing {
namespace {

template <class Half>
__global__ void widen(float* out, const std::uint32_t* in) {
  const int lane = int(threadIdx.x);
  out[2 * lane] = gpu::low<Half>(in[lane]);
  out[2 * lane + 1] = gpu::high<Half>(in[lane]);
}
template <class Half>
__global__ void shorten(std::uint32_t* out, const float* in) {
  const int lane = int(threadIdx.x);
  out[lane] = gpu::pack<Half>(in[2 * lane], in[2 * lane + 1]);
}

template <class F8>
__global__ void pack(std::uint32_t* out, const float* in) {
  const int lane = int(threadIdx.x);
  out[lane] = gpu::pack_eights<F8>(in[2 * lane], in[2 * lane + 1]);
}

struct Matrix {
  alignas(16) std::uint16_t numbers[16 * 32];
};
template <bool transposed>
__global__ void load(std::uint32_t* out, const std::uint16_t* matrix) {
  auto& shared = gpu::shared<Matrix>();
  const int lane = int(threadIdx.x);
  for (int i = lane; i < 16 * 32; i += 32) shared.numbers[i] = matrix[i];
  __syncwarp();
  std::uint32_t mine[4];
  gpu::load_matrices<transposed>(mine, shared.numbers + row_of(lane));
  for (int i = 0; i < 4; ++i) out[4 * lane + i] = mine[i];
}
template <class Half>
__global__ void multiply(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  const int lane = int(threadIdx.x);
  float sum[4];
  std::uint32_t left[4];
  for (int i = 0; i < 4; ++i) {
    sum[i] = d[4 * lane + i];
    left[i] = a[4 * lane + i];
  }
  gpu::multiply<Half>(sum, left, b[2 * lane], b[2 * lane + 1]);
  for (int i = 0; i < 4; ++i) d[4 * lane + i] = sum[i];
}

struct Halves {
  alignas(16) float of[2][128];
};
__global__ void copy(float* out, const float* in) {
  auto& shared = gpu::shared<Halves>();
  const int lane = int(threadIdx.x);
  for (int half = 0; half < 2; ++half) {
    gpu::copy_async(shared.of[half] + 4 * lane, in + 128 * half + 4 * lane, lane % 3 != 0);
    gpu::commit_copies();
  }
  gpu::wait_copies<1>();
  for (int i = 4 * lane; i < 4 * lane + 4; ++i) out[i] = shared.of[0][i];
  gpu::wait_copies<0>();
  for (int i = 4 * lane; i < 4 * lane + 4; ++i) out[128 + i] = shared.of[1][i];
}

/// Nothing but a type that is not empty: for it over_warp() is that of GPUs.
template <class Combine>
struct ByExchanges {
  Combine combine;
  int held;
  float operator()(float a, float b) const { return combine(a, b); }
};
__global__ void reduce(float* out, const float* in) {
  const int lane = int(threadIdx.x);
  out[lane] = cuda::over_warp(in[lane], ByExchanges<cuda::Plus>{});
  out[32 + lane] = cuda::over_warp(in[lane], cuda::Plus{});
  out[64 + lane] = cuda::over_warp(in[lane], ByExchanges<cuda::Greater>{});
  out[96 + lane] = cuda::over_warp(in[lane], cuda::Greater{});
}

}  // namespace

void widen_pairs(const Trial& trial, float* out, const std::uint32_t* in) {
  gpu::launch(trial.stream, {1, 32}, trial.bf16 ? widen<bf16> : widen<f16>, out, in);
}
void shorten_pairs(const Trial& trial, std::uint32_t* out, const float* in) {
  gpu::launch(trial.stream, {1, 32}, trial.bf16 ? shorten<bf16> : shorten<f16>, out, in);
}
void pack_eights(bool e5m2, std::uint32_t* out, const float* in) {
  gpu::launch(cudaStream_t{}, {1, 32}, e5m2 ? pack<f8e5m2> : pack<f8e4m3>, out, in);
}
void load_rows(const Trial& trial, std::uint32_t* out, const std::uint16_t* matrix) {
  gpu::launch(trial.stream, {1, 32, sizeof(Matrix)}, trial.transposed ? load<true> : load<false>, out,
              matrix);
}
void multiply_fragments(const Trial& trial, float* d, const std::uint32_t* a, const std::uint32_t* b) {
  gpu::launch(trial.stream, {1, 32}, trial.bf16 ? multiply<bf16> : multiply<f16>, d, a, b);
}
void copy_rows(const Trial& trial, float* out, const float* in) {
  gpu::launch(trial.stream, {1, 32, sizeof(Halves)}, copy, out, in);
}

void reduce_warp(float* out, const float* in) { gpu::launch(cudaStream_t{}, {1, 32}, reduce, out, in); }

}  // namespace weft::testing
