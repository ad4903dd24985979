// Cross entropy in pieces, as ops/loss.h joins them. s = sum of exp(logit - max):
//   loss = log s - (target - max) + z (max + log s)^2
//   dlogit = p (1 + 2 z (max + log s)) - [target],  p = exp(logit - max) / s
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/rowwise.h"
#include "weft/backend/cuda/space.h"

namespace weft {
namespace {

using namespace cuda;

struct Loss {
  Rows logits;
  float *max, *sum, *target, *loss;
  const std::int32_t* ids;
  const float* weight;
  std::int64_t first, count;
};

Loss job_of(const LossParts& parts, const Tensor& logits, VocabularyPart part) {
  const auto floats = [](const Tensor& t) { return elements<float>(t); };
  Loss out{};
  out.logits = rows_of(logits);
  out.max = floats(parts.max);
  out.sum = floats(parts.sum);
  out.target = floats(parts.target);
  out.first = part.first;
  out.count = part.count;
  return out;
}

/// None of the part's columns where the target is another part's word.
__device__ __forceinline__ std::int64_t column_of(const Loss& job, std::int64_t row) {
  return job.ids[row] - job.first;
}

__device__ __forceinline__ float greater(const Loss& job, std::int64_t column, const Eight& e, float max) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < job.count) max = e.x[i] > max ? e.x[i] : max;
  return max;
}

/// Of a row, as far as a thread has come.
struct Sums {
  float max;
  std::int64_t wanted;  // the target's column
  float all = 0, target = 0;

  __device__ __forceinline__ void add(const Loss& job, std::int64_t column, const Eight& e) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i >= job.count) continue;
      all += gpu::power_of_two((e.x[i] - max) * log2_e);
      if (column + i == wanted) target = e.x[i] - max;
    }
  }
  __device__ __forceinline__ void meet(Scratch& scratch) {
    all = over_block(all, scratch, 0, Plus{});
    target = over_block(target, scratch, 0, Plus{});
  }
};

struct Slope {
  float max, pull, weight;  // pull: one over the sum
  std::int64_t wanted;

  __device__ __forceinline__ Eight of(const Loss& job, std::int64_t column, Eight e) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float aim = column + i == wanted ? 1.0F : 0.0F;
      e.x[i] =
          column + i < job.count ? weight * (gpu::power_of_two((e.x[i] - max) * log2_e) * pull - aim) : 0.0F;
    }
    return e;
  }
};

__global__ void __launch_bounds__(256) find_max(Loss job) {
  const std::int64_t row = blockIdx.x;
  float max = -INFINITY;
  walk(job.logits, row, [&](std::int64_t column, const Eight& e) { max = greater(job, column, e, max); });
  max = over_block(max, gpu::shared<Scratch>(), -INFINITY, Greater{});
  if (threadIdx.x == 0) job.max[row] = max;
}

__global__ void __launch_bounds__(256) sum_up(Loss job) {
  const std::int64_t row = blockIdx.x;
  Sums sums{job.max[row], column_of(job, row)};
  walk(job.logits, row, [&](std::int64_t column, const Eight& e) { sums.add(job, column, e); });
  sums.meet(gpu::shared<Scratch>());
  if (threadIdx.x != 0) return;
  job.sum[row] = sums.all;
  job.target[row] = sums.target;
}

__global__ void __launch_bounds__(256) finish(Loss job, std::int64_t rows) {
  const std::int64_t row = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  job.loss[row] = logf(job.sum[row]) - job.target[row];
}

__global__ void __launch_bounds__(256) backward(Loss job) {
  const std::int64_t row = blockIdx.x, start = start_of(job.logits, row);
  const Slope slope{job.max[row], 1 / job.sum[row], job.weight[row], column_of(job, row)};
  walk(job.logits, row, [&](std::int64_t column, const Eight& e) {
    write(job.logits, start, column, slope.of(job, column, e));
  });
}

/// A row of halves, each thread's own eights: nobody reads what another thread has brought.
struct HeldRow {
  Scratch scratch;
  uint4 eights[most_held / 8];
};
static_assert(sizeof(HeldRow) == beside_held_row + 2 * most_held);
constexpr int holding_threads = 512;

/// Calls f(column, eight) for what this thread holds.
template <class F>
__device__ __forceinline__ void walk_held(const Loss& job, const HeldRow& held, F f) {
  for (std::int64_t column = threadIdx.x * 8; column < job.logits.width; column += blockDim.x * 8)
    f(column, unpack(job.logits, column, {gpu::load<uint4>(held.eights + column / 8), {}}));
}

// All of the row is on its way before any of it is looked at.
__global__ void __launch_bounds__(holding_threads) lose(Loss job) {
  const std::int64_t row = blockIdx.x, wanted = column_of(job, row), start = start_of(job.logits, row);
  auto& held = gpu::shared<HeldRow>();
  for (std::int64_t column = threadIdx.x * 8; column < job.logits.width; column += blockDim.x * 8)
    gpu::copy_async(held.eights + column / 8, job.logits.data + (start + column) * 2);
  gpu::commit_copies();
  gpu::wait_copies<0>();
  float max = -INFINITY;
  walk_held(job, held, [&](std::int64_t column, const Eight& e) { max = greater(job, column, e, max); });
  max = over_block(max, held.scratch, -INFINITY, Greater{});
  Sums sums{max, wanted};
  walk_held(job, held, [&](std::int64_t column, const Eight& e) { sums.add(job, column, e); });
  sums.meet(held.scratch);
  if (threadIdx.x == 0) job.loss[row] = logf(sums.all) - sums.target;
  const Slope slope{max, 1 / sums.all, job.weight[row], wanted};
  walk_held(job, held, [&](std::int64_t column, const Eight& e) {
    write(job.logits, start, column, slope.of(job, column, e));
  });
}

void over_rows(Queue& queue, const Loss& job, void (*kernel)(Loss)) {
  if (job.logits.count == 0) return;
  gpu::launch(queue, {job.logits.count, threads_of_row(job.logits.width), sizeof(Scratch)}, kernel, job);
}

}  // namespace

void CudaKernels::loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets& targets,
                                    VocabularyPart part) {
  if (!loses_in_one_walk(logits)) return Kernels::loss_and_gradient(loss, logits, targets, part);
  Loss job = job_of({}, logits, part);
  job.loss = elements<float>(loss);
  job.ids = elements<std::int32_t>(targets.ids);
  job.weight = elements<float>(targets.weight);
  const gpu::Shape shape{job.logits.count, holding_threads, std::size_t(bytes_to_hold_row(logits))};
  if (job.logits.count > 0) gpu::launch(queue(), shape, lose, job);
}

void CudaKernels::loss_max(const LossParts& parts, const Tensor& logits, VocabularyPart part) {
  over_rows(queue(), job_of(parts, logits, part), find_max);
}

void CudaKernels::loss_sums(const LossParts& parts, const Tensor& logits, const Tensor& targets,
                            VocabularyPart part) {
  Loss job = job_of(parts, logits, part);
  job.ids = elements<std::int32_t>(targets);
  over_rows(queue(), job, sum_up);
}

void CudaKernels::loss_finish(const Tensor& loss, const LossParts& parts) {
  Loss job = job_of(parts, {}, {});
  job.loss = elements<float>(loss);
  const std::int64_t rows = loss.elements();
  if (rows > 0) gpu::launch(queue(), {(rows + 255) / 256, 256}, finish, job, rows);
}

void CudaKernels::loss_backward(const Tensor& logits, const LossParts& parts, const LossTargets& targets,
                                VocabularyPart part) {
  Loss job = job_of(parts, logits, part);
  job.ids = elements<std::int32_t>(targets.ids);
  job.weight = elements<float>(targets.weight);
  over_rows(queue(), job, backward);
}

}  // namespace weft
