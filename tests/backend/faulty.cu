// A sum over rows, as it should be and with one mistake each.
#include "tests/backend/faulty.h"

#include <gpu.h>

namespace weft::testing {
namespace {

struct Scratch {
  float parts[8];
  alignas(16) float row[2][256];
  float more[2];
};

template <Mistake planted>
__global__ void sum_rows(float* out, const float* x) {
  auto& shared = gpu::shared<Scratch>();
  const int thread = int(threadIdx.x), lane = thread % 32;
  const float* row = x + std::int64_t(blockIdx.x) * 256;
  // Twice into two halves of shared memory, 64 threads 16 bytes each; the second is what counts.
  for (int turn = 0; turn < 2; ++turn) {
    float* to = shared.row[planted == Mistake::no_barrier_before_refill ? 0 : turn];
    if (thread < 64) gpu::copy_async(to + 4 * thread, row + 4 * thread);
    gpu::commit_copies();
    if (planted != Mistake::no_wait) gpu::wait_copies<0>();
    if (planted != Mistake::no_barrier_before_refill || turn == 0) __syncthreads();
    if (planted == Mistake::no_barrier_before_refill && turn == 0)
      out[blockIdx.x * 256 + threadIdx.x] = to[255 - thread];
  }
  float sum = shared.row[planted == Mistake::no_barrier_before_refill ? 0 : 1][thread];
  if (planted == Mistake::one_too_far) sum = row[thread + 1];
  if (planted == Mistake::shared_too_far) sum += shared.more[thread < 2 ? 1 : 4];
  if (planted == Mistake::never_written) sum += shared.more[0];
  if (planted == Mistake::unaligned) sum += gpu::load<float4>(row + 1).x;
  for (int by = 16; by > 0; by /= 2) {
    if (planted == Mistake::narrow_mask)
      sum += __shfl_xor_sync(0xFFFFU, sum, by);
    else if (planted == Mistake::wide_mask) {
      if (lane < 16) sum += __shfl_xor_sync(~0U, sum, by);
    } else
      sum += __shfl_xor_sync(~0U, sum, by);
  }
  if (lane == 0) shared.parts[thread / 32] = sum;
  if (planted == Mistake::divergent) {
    if (thread < 128)
      __syncthreads();
    else
      __syncwarp();
  } else if (planted != Mistake::no_barrier)
    __syncthreads();
  sum = 0;
  for (int warp = 0; warp < 8; ++warp) sum += shared.parts[warp];
  if (planted == Mistake::no_barrier_after && lane == 0) shared.parts[thread / 32] = 0;
  if (planted == Mistake::two_blocks ? thread == 0 : thread == 7)
    out[planted == Mistake::two_blocks ? 0 : blockIdx.x] = sum;
}

__global__ void fill_all(float* x, float value, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] = value;
}
__global__ void copy_all(float* out, const float* x, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = x[i];
}

struct Word {
  float number;
};
template <bool ordered>
__global__ void hand_on(float* out, const float* x) {
  auto& word = gpu::shared<Word>();
  if (threadIdx.x == 0) word.number = x[0];
  __syncwarp();
  const float mine = word.number;
  if (ordered) __syncwarp();
  if (threadIdx.x == 31) word.number += 1;
  __syncwarp();
  out[threadIdx.x] = mine + word.number;
}

template <Mistake planted>
void run(cudaStream_t stream, Mistake wanted, float* out, const float* x, int rows) {
  if (planted == wanted) return gpu::launch(stream, {rows, 256, sizeof(Scratch)}, sum_rows<planted>, out, x);
  if constexpr (planted < Mistake::two_blocks)
    run<static_cast<Mistake>(static_cast<int>(planted) + 1)>(stream, wanted, out, x, rows);
}

template <Then then, bool ordered>
__global__ void write_halves(float* out, float* x) {
  auto* const halves = reinterpret_cast<std::uint16_t*>(x);
  const bool is_first = threadIdx.x == 0, is_other = threadIdx.x == 32;
  if (is_other) halves[1] = 1;
  if (is_first) halves[0] = 1;
  if constexpr (ordered) __syncthreads();
  if (!is_first) return;
  if constexpr (then == Then::read_half) out[0] = halves[1];
  if constexpr (then == Then::read_word) out[0] = x[0];
  if constexpr (then == Then::write_word) x[0] = 1;
}

template <bool ordered>
void write_and(cudaStream_t stream, Then then, float* out, float* x) {
  constexpr void (*kernels[])(float*, float*) = {
      write_halves<Then::nothing, ordered>, write_halves<Then::read_half, ordered>,
      write_halves<Then::read_word, ordered>, write_halves<Then::write_word, ordered>};
  gpu::launch(stream, {1, 64}, kernels[int(then)], out, x);
}

}  // namespace

void sums(cudaStream_t stream, Mistake mistake, float* out, const float* x, int rows) {
  run<Mistake::none>(stream, mistake, out, x, rows);
}
void fill(cudaStream_t stream, float* x, float value, int count) {
  gpu::launch(stream, {(count + 127) / 128, 128}, fill_all, x, value, count);
}
void copy(cudaStream_t stream, float* out, const float* x, int count) {
  gpu::launch(stream, {(count + 127) / 128, 128}, copy_all, out, x, count);
}
void hand_round(cudaStream_t stream, bool ordered, float* out, const float* x) {
  gpu::launch(stream, {1, 32, sizeof(Word)}, ordered ? hand_on<true> : hand_on<false>, out, x);
}
void share_word(cudaStream_t stream, Then then, bool ordered, float* out, float* x) {
  ordered ? write_and<true>(stream, then, out, x) : write_and<false>(stream, then, out, x);
}

}  // namespace weft::testing
