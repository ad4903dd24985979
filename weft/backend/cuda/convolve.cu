// A filter for every channel that looks back a few steps, and silu of what it gives. A thread has eight
// channels and walks over a stretch of steps.
//
//   sum_i = bias + sum over k of w_k x_(i-k),  y = silu(sum)
//   d_i = dy_i silu'(sum_i),  dx_i = sum over k of w_k d_(i+k),  dw_k += sum over i of d_i x_(i-k)
//   dbias += sum over i of d_i
#include "weft/backend/cuda/attention_job.h"
#include "weft/backend/cuda/columns.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft {
namespace {

using namespace cuda;

/// Filters of so many taps at most keep what they saw last in registers; longer ones read it again.
constexpr int held = 4, threads = 64;

struct Filter {
  Heads x, y;         // y: what is written
  Heads dy;           // backward
  Rows weight;        // [g, c, taps], in order
  Rows bias;          // [g, c], in order; or none
  float* lines;       // backward: [stretches, b, g, c, taps]
  float* bias_lines;  // [stretches, b, g, c]
  int taps, steps, batch, groups, chunks, stretch;
  std::int64_t total;  // threads that have something to do
};

/// Where a thread is at work.
struct Spot {
  int b, g, column, first, last;  // steps [first, last)
  std::int64_t line;              // of those of weights' gradients
};
__device__ __forceinline__ Spot spot_of(const Filter& job, std::int64_t task) {
  const auto at = std::uint32_t(task);  // a thread has a thousand elements, so no GPU has memory for 2^32
  const std::uint32_t of_row = std::uint32_t(job.chunks), row = at / of_row, line = row / job.groups;
  const int first = int(line / job.batch) * job.stretch, last = first + job.stretch;
  return {int(line % job.batch),
          int(row % job.groups),
          int(at % of_row) * 8,
          first,
          last < job.steps ? last : job.steps,
          line};
}

/// Elements of a row lie side by side here; threads that walk have no registers for eight places apart.
__device__ __forceinline__ Rows side_by_side(const Heads& of) {
  Rows out = of.one;
  out.step = 1;
  return out;
}
/// Eight channels of a step; zeros before the first and behind the last.
__device__ __forceinline__ Eight step_of(const Filter& job, const Heads& of, const Spot& at, int step) {
  if (step < 0 || step >= job.steps) return {};
  return read(side_by_side(of), of.at(step, at.b, at.g, 0), at.column);
}
__device__ __forceinline__ void put_step(const Filter& job, const Spot& at, int step, const Eight& e) {
  write(side_by_side(job.y), job.y.at(step, at.b, at.g, 0), at.column, e);
}
/// Of channel column + i, k steps back.
__device__ __forceinline__ std::int64_t place_of_weight(const Filter& job, const Spot& at, int i, int k) {
  return ((at.g * job.x.one.width + at.column + i) + 1) * job.taps - 1 - k;
}
__device__ __forceinline__ Eight weights_of(const Filter& job, const Spot& at, int k) {
  Eight out{};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (k < job.taps && at.column + i < job.x.one.width)
      out.x[i] = get(job.weight, place_of_weight(job, at, i, k));
  return out;
}
__device__ __forceinline__ std::int64_t place_of_bias(const Filter& job, const Spot& at) {
  return at.g * job.x.one.width + at.column;
}
/// Zeros where there is none, and behind the last channel.
template <bool biased>
__device__ __forceinline__ Eight bias_of(const Filter& job, const Spot& at) {
  Eight out{};
  if (!biased) return out;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (at.column + i < job.x.one.width) out.x[i] = get(job.bias, place_of_bias(job, at) + i);
  return out;
}
__device__ __forceinline__ void put_bias_line(const Filter& job, const Spot& at, const Eight& sums) {
  const std::int64_t line = at.line * job.groups * job.x.one.width + place_of_bias(job, at);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (at.column + i < job.x.one.width) job.bias_lines[line + i] = sums.x[i];
}
__device__ __forceinline__ void put_line(const Filter& job, const Spot& at, int k, const Eight& sums) {
  const std::int64_t line = at.line * job.groups * job.x.one.width * job.taps;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (k < job.taps && at.column + i < job.x.one.width)
      job.lines[line + place_of_weight(job, at, i, k)] = sums.x[i];
}

__device__ __forceinline__ void add_products(Eight& to, const Eight& a, const Eight& b) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to.x[i] += a.x[i] * b.x[i];
}
__device__ __forceinline__ void add_to(Eight& to, const Eight& by) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to.x[i] += by.x[i];
}
__device__ __forceinline__ Eight silu(Eight sum) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sum.x[i] = sum.x[i] / (1 + expf(-sum.x[i]));
  return sum;
}
/// dy silu'(sum)
__device__ __forceinline__ Eight through_silu(const Eight& dy, Eight sum) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float share = 1 / (1 + expf(-sum.x[i]));
    sum.x[i] = dy.x[i] * share * (1 + sum.x[i] * (1 - share));
  }
  return sum;
}

/// The newest comes first, the oldest goes.
__device__ __forceinline__ void move_on(Eight (&window)[held], const Eight& newest) {
#pragma unroll
  for (int k = held - 1; k > 0; --k) window[k] = window[k - 1];
  window[0] = newest;
}

__device__ __forceinline__ Eight sum_of(const Eight (&window)[held], const Eight (&w)[held], Eight sum = {}) {
#pragma unroll
  for (int k = 0; k < held; ++k) add_products(sum, w[k], window[k]);
  return sum;
}

// Walks without a bias have no registers for one.
// In the walks below moves from place to place in a window cost less than registers of several turns would.

template <bool biased>
__global__ void __launch_bounds__(threads, 10) filter(Filter job) {
  const std::int64_t task = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (task >= job.total) return;
  const Spot at = spot_of(job, task);
  Eight w[held], x[held] = {};
#pragma unroll
  for (int k = 0; k < held; ++k) w[k] = weights_of(job, at, k);
  const Eight bias = bias_of<biased>(job, at);
#pragma unroll
  for (int k = held - 1; k > 0; --k) move_on(x, step_of(job, job.x, at, at.first - k));
#pragma unroll 1
  for (int i = at.first; i < at.last; ++i) {
    move_on(x, step_of(job, job.x, at, i));
    put_step(job, at, i, silu(sum_of(x, w, bias)));
  }
}

template <bool biased>
__global__ void __launch_bounds__(threads, 4) filter_backward(Filter job) {
  const std::int64_t task = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (task >= job.total) return;
  const Spot at = spot_of(job, task);
  Eight w[held], turned[held], dw[held] = {}, x[held] = {}, d[held] = {};
#pragma unroll
  for (int k = 0; k < held; ++k) turned[held - 1 - k] = w[k] = weights_of(job, at, k);
  const Eight bias = bias_of<biased>(job, at);
  Eight dbias{};
#pragma unroll
  for (int k = held - 1; k > 0; --k) move_on(x, step_of(job, job.x, at, at.first - k));
    // The steps of the next stretch that look back into this one are walked over, too: for dx alone.
#pragma unroll 1
  for (int i = at.first; i < at.last + held - 1; ++i) {
    move_on(x, step_of(job, job.x, at, i));
    move_on(d, through_silu(step_of(job, job.dy, at, i), sum_of(x, w, bias)));
    if (i < at.last) {
      if (biased) add_to(dbias, d[0]);
#pragma unroll
      for (int k = 0; k < held; ++k) add_products(dw[k], d[0], x[k]);
    }
    const int whole = i - (held - 1);  // whose dx has all its terms
    if (whole >= at.first) put_step(job, at, whole, sum_of(d, turned));
  }
#pragma unroll
  for (int k = 0; k < held; ++k) put_line(job, at, k, dw[k]);
  if (biased) put_bias_line(job, at, dbias);
}

/// Of as many taps as there are.
template <bool biased>
__device__ __forceinline__ Eight sum_again(const Filter& job, const Spot& at, int step) {
  Eight sum = bias_of<biased>(job, at);
  for (int k = 0; k < job.taps && k <= step; ++k)
    add_products(sum, weights_of(job, at, k), step_of(job, job.x, at, step - k));
  return sum;
}
template <bool biased>
__device__ __forceinline__ Eight slope_again(const Filter& job, const Spot& at, int step) {
  return through_silu(step_of(job, job.dy, at, step), sum_again<biased>(job, at, step));
}

template <bool biased>
__global__ void __launch_bounds__(threads, 8) filter_long(Filter job) {
  const std::int64_t task = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (task >= job.total) return;
  const Spot at = spot_of(job, task);
  for (int i = at.first; i < at.last; ++i) put_step(job, at, i, silu(sum_again<biased>(job, at, i)));
}

template <bool biased>
__global__ void __launch_bounds__(threads, 6) filter_long_backward(Filter job) {
  const std::int64_t task = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (task >= job.total) return;
  const Spot at = spot_of(job, task);
  for (int i = at.first; i < at.last; ++i) {
    Eight dx{};
    for (int k = 0; k < job.taps && i + k < job.steps; ++k)
      add_products(dx, weights_of(job, at, k), slope_again<biased>(job, at, i + k));
    put_step(job, at, i, dx);
  }
  for (int k = 0; k < job.taps; ++k) {
    Eight dw{};
    for (int i = at.first; i < at.last; ++i)
      add_products(dw, slope_again<biased>(job, at, i), step_of(job, job.x, at, i - k));
    put_line(job, at, k, dw);
  }
  if (!biased) return;
  Eight dbias{};
  for (int i = at.first; i < at.last; ++i) add_to(dbias, slope_again<biased>(job, at, i));
  put_bias_line(job, at, dbias);
}

Filter filter_of(const Tensor& to, const Tensor& x, const Filters& filters, int stretch) {
  Filter job{};
  job.x = heads_of(x);
  job.y = heads_of(to);
  job.weight = rows_of(filters.weight);
  if (filters.bias) job.bias = rows_of(filters.bias);
  job.taps = int(filters.weight.dim(2));
  job.steps = int(x.dim(0));
  job.batch = int(x.dim(1));
  job.groups = int(x.dim(2));
  job.chunks = int(chunks_of(x.dim(3)));
  job.stretch = stretch;
  const std::int64_t stretches = (x.dim(0) + stretch - 1) / stretch;
  job.total = stretches * x.dim(1) * x.dim(2) * job.chunks;
  return job;
}

struct Walks {
  void (*of_few_taps)(Filter);
  void (*of_many)(Filter);
};
void launch(Queue& queue, const Walks& walks, const Filter& job) {
  const auto kernel = job.taps <= held ? walks.of_few_taps : walks.of_many;
  gpu::launch(queue, {(job.total + threads - 1) / threads, threads}, kernel, job);
}

}  // namespace

void CudaKernels::convolve(const Tensor& y, const Tensor& x, const Filters& filters) {
  if (x.elements() == 0) return;
  const Filter job = filter_of(y, x, filters, filtered_at_once);
  if (filters.bias)
    launch(queue(), {filter<true>, filter_long<true>}, job);
  else
    launch(queue(), {filter<false>, filter_long<false>}, job);
}

void CudaKernels::convolve_backward(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                                    const Filters& filters) {
  if (x.elements() == 0) return;
  const Tensor lines = workspace(lines_of_filters(x, filters.weight)),
               bias_lines = filters.bias ? workspace(lines_of_filters(x, filters.bias)) : Tensor();
  Filter job = filter_of(grads.dx, x, filters, filtered_in_line);
  job.dy = heads_of(dy);
  job.lines = elements<float>(lines);
  if (filters.bias) job.bias_lines = elements<float>(bias_lines);
  if (filters.bias)
    launch(queue(), {filter_backward<true>, filter_long_backward<true>}, job);
  else
    launch(queue(), {filter_backward<false>, filter_long_backward<false>}, job);
  const int count = int(lines.dim(0));
  add_slabs(queue(), {rows_of(grads.dweight.view({grads.dweight.elements()})), job.lines, count});
  if (filters.bias)
    add_slabs(queue(), {rows_of(grads.dbias.view({grads.dbias.elements()})), job.bias_lines, count});
}

}  // namespace weft
