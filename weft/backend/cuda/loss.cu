// Cross entropy in pieces, as ops/loss.h joins them. s = sum of exp(logit - max):
//   loss = log s - (target - max) + z (max + log s)^2
//   dlogit = p (1 + 2 z (max + log s)) - [target],  p = exp(logit - max) / s
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/rowwise.h"

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

__global__ void __launch_bounds__(256) find_max(Loss job) {
  const std::int64_t row = blockIdx.x;
  float max = -INFINITY;
  walk(job.logits, row, [&](std::int64_t column, const Eight& e) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < job.count) max = e.x[i] > max ? e.x[i] : max;
  });
  max = over_block(max, gpu::shared<Scratch>(), -INFINITY, Greater{});
  if (threadIdx.x == 0) job.max[row] = max;
}

__global__ void __launch_bounds__(256) sum_up(Loss job) {
  const std::int64_t row = blockIdx.x, wanted = column_of(job, row);
  auto& scratch = gpu::shared<Scratch>();
  const float max = job.max[row];
  float sum = 0, target = 0;
  walk(job.logits, row, [&](std::int64_t column, const Eight& e) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i >= job.count) continue;
      sum += gpu::power_of_two((e.x[i] - max) * log2_e);
      if (column + i == wanted) target = e.x[i] - max;
    }
  });
  sum = over_block(sum, scratch, 0, Plus{});
  target = over_block(target, scratch, 0, Plus{});
  if (threadIdx.x != 0) return;
  job.sum[row] = sum;
  job.target[row] = target;
}

__global__ void __launch_bounds__(256) finish(Loss job, std::int64_t rows) {
  const std::int64_t row = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  job.loss[row] = logf(job.sum[row]) - job.target[row];
}

__global__ void __launch_bounds__(256) backward(Loss job) {
  const std::int64_t row = blockIdx.x, wanted = column_of(job, row);
  const float max = job.max[row], sum = job.sum[row], weight = job.weight[row];
  const float pull = 1 / sum;
  const std::int64_t start = start_of(job.logits, row);
  walk(job.logits, row, [&](std::int64_t column, Eight e) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float aim = column + i == wanted ? 1.0F : 0.0F;
      e.x[i] =
          column + i < job.count ? weight * (gpu::power_of_two((e.x[i] - max) * log2_e) * pull - aim) : 0.0F;
    }
    write(job.logits, start, column, e);
  });
}

void over_rows(Queue& queue, const Loss& job, void (*kernel)(Loss)) {
  if (job.logits.count == 0) return;
  gpu::launch(queue, {job.logits.count, threads_of_row(job.logits.width), sizeof(Scratch)}, kernel, job);
}

}  // namespace

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
