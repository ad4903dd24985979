// Filters over a few steps, and silu of what they give. A thread takes one channel of one sequence over a run
// of steps; neighbouring lanes take neighbouring channels.
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/space.h"

namespace weft {
namespace {

using namespace cuda;

constexpr int most = int(most_taps);

struct Filters {
  Rows x, y, dy, dx;                                     // [s b g, c]
  Rows weight;                                           // one row: [g c taps]
  float* sums;                                           // [b runs, g c taps]: of dweight
  std::int64_t steps, across, channels, columns, total;  // across: b g, columns: b g c
  int groups, taps;
};

/// A channel's elements at step after step.
struct Line {
  std::int64_t at, step;
};
__device__ __forceinline__ Line line_of(const Filters& job, const Rows& rows, std::int64_t column) {
  const std::int64_t row = column / job.channels, first = start_of(rows, row);
  const std::int64_t step = job.steps > 1 ? start_of(rows, row + job.across) - first : 0;
  return {first + (column - row * job.channels) * rows.step, step};
}

/// What a thread takes: a channel of a group, and steps.
struct Run {
  std::int64_t number, column, from, to;
  std::int64_t first_tap;  // of its weights, in all of them
};
__device__ __forceinline__ Run run_of(const Filters& job, std::int64_t thread) {
  Run out;
  out.number = row_of(thread, job.columns, job.total);
  out.column = thread - out.number * job.columns;
  out.from = out.number * filtered_run;
  out.to = out.from + filtered_run < job.steps ? out.from + filtered_run : job.steps;
  const std::int64_t group = out.column / job.channels % job.groups;
  out.first_tap = (group * job.channels + out.column % job.channels) * job.taps;
  return out;
}

struct Taps {
  float of[most];
};
__device__ __forceinline__ Taps taps_of(const Filters& job, const Run& run) {
  Taps out;
#pragma unroll
  for (int j = 0; j < most; ++j) out.of[j] = j < job.taps ? get(job.weight, run.first_tap + j) : 0.0F;
  return out;
}

/// Tap j reads the step `taps - 1 - j` before; what lies before the first is 0.
__device__ __forceinline__ float seen(const Filters& job, const Line& x, std::int64_t step, int j) {
  const std::int64_t from = step - job.taps + 1 + j;
  return from >= 0 ? get(job.x, x.at + from * x.step) : 0.0F;
}
__device__ __forceinline__ float filtered(const Filters& job, const Line& x, std::int64_t step,
                                          const Taps& taps) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < most; ++j)
    if (j < job.taps) sum += taps.of[j] * seen(job, x, step, j);
  return sum;
}

__global__ void __launch_bounds__(256) filter(Filters job) {
  const std::int64_t thread = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= job.total) return;
  const Run run = run_of(job, thread);
  const Taps taps = taps_of(job, run);
  const Line x = line_of(job, job.x, run.column), y = line_of(job, job.y, run.column);
  for (std::int64_t i = run.from; i < run.to; ++i) {
    const float sum = filtered(job, x, i, taps);
    put(job.y, y.at + i * y.step, sum / (1 + expf(-sum)));
  }
}

/// The slope of a step's sum.
__device__ __forceinline__ float slope_of(const Filters& job, const Line& dy, std::int64_t step, float sum) {
  const float share = 1 / (1 + expf(-sum));
  return get(job.dy, dy.at + step * dy.step) * share * (1 + sum * (1 - share));
}

// From the last step of a run and of those behind it that see it to the first: a step's slope, once made,
// serves the steps that it saw.
__global__ void __launch_bounds__(256) filter_backward(Filters job) {
  const std::int64_t thread = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= job.total) return;
  const Run run = run_of(job, thread);
  const Taps taps = taps_of(job, run);
  const Line x = line_of(job, job.x, run.column), dy = line_of(job, job.dy, run.column),
             dx = line_of(job, job.dx, run.column);
  float slopes[most] = {}, dweight[most] = {};  // slopes[j]: of the step j behind this one
  const std::int64_t behind = run.to + job.taps - 1 < job.steps ? run.to + job.taps - 1 : job.steps;
  for (std::int64_t i = behind - 1; i >= run.from; --i) {
#pragma unroll
    for (int j = most - 1; j > 0; --j) slopes[j] = slopes[j - 1];
    slopes[0] = slope_of(job, dy, i, filtered(job, x, i, taps));
    if (i >= run.to) continue;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < most; ++j) {
      if (j >= job.taps) continue;
      dweight[j] += slopes[0] * seen(job, x, i, j);
      // The step j behind reads this one by its tap taps - 1 - j.
      sum += slopes[j] * get(job.weight, run.first_tap + job.taps - 1 - j);
    }
    put(job.dx, dx.at + i * dx.step, sum);
  }
  const std::int64_t sequence = run.column / job.channels / job.groups;
  float* sums = job.sums + (run.number * (job.across / job.groups) + sequence) * job.weight.width;
#pragma unroll
  for (int j = 0; j < most; ++j)
    if (j < job.taps) sums[run.first_tap + j] = dweight[j];
}

struct Added {
  float* total;
  const float* sums;
  std::int64_t lines, width;
};
__global__ void __launch_bounds__(256) add_lines(Added job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.width) return;
  float sum = 0;
  for (std::int64_t line = 0; line < job.lines; ++line) sum += job.sums[line * job.width + i];
  job.total[i] += sum;
}

Filters job_of(const Tensor& x, const Tensor& weight) {
  Filters job{};
  job.x = rows_of(x);
  job.weight = rows_of(weight.view({weight.elements()}));
  job.steps = x.dim(0);
  job.across = x.dim(1) * x.dim(2);
  job.channels = x.dim(3);
  job.columns = job.across * job.channels;
  job.total = job.columns * runs_of_filter(x);
  job.groups = int(x.dim(2));
  job.taps = int(weight.dim(2));
  return job;
}

}  // namespace

void CudaKernels::convolve(const Tensor& y, const Tensor& x, const Tensor& weight) {
  if (x.elements() == 0) return;
  Filters job = job_of(x, weight);
  job.y = rows_of(y);
  gpu::launch(queue(), {(job.total + 255) / 256, 256}, filter, job);
}

void CudaKernels::convolve_backward(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                                    const Tensor& weight) {
  if (x.elements() == 0) return;
  Filters job = job_of(x, weight);
  job.dy = rows_of(dy);
  job.dx = rows_of(grads.dx);
  const Tensor sums = workspace(lines_of_filter(x, weight));
  job.sums = elements<float>(sums);
  gpu::launch(queue(), {(job.total + 255) / 256, 256}, filter_backward, job);
  gpu::launch(queue(), {(sums.dim(1) + 255) / 256, 256}, add_lines,
              Added{elements<float>(grads.dweight), job.sums, sums.dim(0), sums.dim(1)});
}

}  // namespace weft
