// Layer and RMS norms: a row a block, held in registers between its uses. Longer ones: norm_wide.cu.
#include "weft/backend/cuda/columns.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/norm_rows.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

// So many blocks at once: nvcc is told, or it spills registers of long rows to have more.
template <int chunks>
__global__ void __launch_bounds__(256, chunks > 1 ? 2 : 3) forward(NormForward job) {
  const std::int64_t row = blockIdx.x;
  auto& scratch = gpu::shared<Scratch>();
  Eight held[chunks];
  float sum = 0;
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    const std::int64_t column = (threadIdx.x + c * blockDim.x) * 8;
    held[c] = column < job.x.width ? input(job, row, column) : Eight{};
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += held[c].x[i];
  }
  const auto width = float(job.x.width);
  const float mean = job.centered ? over_block(sum, scratch, 0, Plus{}) / width : 0;
  float squares = 0;
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    const std::int64_t column = (threadIdx.x + c * blockDim.x) * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      held[c].x[i] -= mean;
      if (column + i < job.x.width) squares += held[c].x[i] * held[c].x[i];
    }
  }
  const float rstd = 1 / sqrtf(over_block(squares, scratch, 0, Plus{}) / width + job.epsilon);
  if (threadIdx.x == 0) {
    put(job.rstd, start_of(job.rstd, row), rstd);
    if (job.mean.data) put(job.mean, start_of(job.mean, row), mean);
  }
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    const std::int64_t column = (threadIdx.x + c * blockDim.x) * 8;
    if (column >= job.x.width) continue;
    const Eight gain = read(job.gain, 0, column), bias = read(job.bias, 0, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) held[c].x[i] = held[c].x[i] * rstd * (gain.x[i] + job.plus) + bias.x[i];
    write(job.y, start_of(job.y, row), column, held[c]);
  }
}

/// Threads for a row: one for eight elements, in whole warps.
int threads_for(std::int64_t width) {
  return int(std::min<std::int64_t>(256, (chunks_of(width) + 31) / 32 * 32));
}

void launch_forward(Queue& queue, const NormForward& job) {
  if (job.x.count == 0 || job.x.width == 0) return;
  if (job.x.width > widest_held_row) return norm_of_wide_rows(queue, job);
  const gpu::Shape shape{job.x.count, threads_for(job.x.width), sizeof(Scratch)};
  gpu::launch(queue, shape, job.x.width <= widest_held_row / 4 ? forward<1> : forward<4>, job);
}

NormForward forward_of(const Tensor& y, const NormStats& stats, const NormWeights& weights,
                       const NormArgs& how) {
  return {.x = {},
          .y = rows_of(y),
          .gain = rows_of(weights.gain),
          .bias = rows_of(weights.bias),
          .mean = stats.mean ? for_every_column(stats.mean, 1) : Rows{},
          .rstd = for_every_column(stats.rstd, 1),
          .before = {},
          .epsilon = how.epsilon,
          .plus = how.one_plus_gain ? 1.0F : 0.0F,
          .centered = how.kind == NormKind::layer};
}

/// Two sums over a block, and those of the row after it, which may begin while some thread still reads these.
struct TwoRows {
  struct {
    float along[32], sum[32];
  } row[2];
};

struct TwoSums {
  float along, sum;
};
__device__ __forceinline__ TwoSums over_block_of_row(TwoSums x, TwoRows& scratch, int turn) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  auto& parts = scratch.row[turn];
  x.along = over_warp(x.along, Plus{});
  x.sum = over_warp(x.sum, Plus{});
  if (lane == 0) {
    parts.along[warp] = x.along;
    parts.sum[warp] = x.sum;
  }
  __syncthreads();
  x.along = over_warp(lane < warps ? parts.along[lane] : 0.0F, Plus{});
  x.sum = over_warp(lane < warps ? parts.sum[lane] : 0.0F, Plus{});
  return x;
}

/// This thread's columns of the line of its slab.
template <int chunks>
__device__ __forceinline__ void put_line(float* lines, std::int64_t width, const float (&sums)[chunks][8]) {
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    const std::int64_t column = (threadIdx.x + c * blockDim.x) * 8;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < width) lines[blockIdx.x * width + column + i] = sums[c][i];
  }
}

// A block takes a slab of rows, and a thread the same columns of each, so that sums over rows stay in
// registers.
template <int chunks>
__global__ void __launch_bounds__(256, chunks > 1 ? 0 : 3) backward(NormBackward job) {
  auto& scratch = gpu::shared<TwoRows>();
  const auto width = float(job.x.width);
  float dgain[chunks][8] = {}, dbias[chunks][8] = {};
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < job.x.count; row += gridDim.x, turn ^= 1) {
    // Of a short row it is asked for at once what is wanted last; a long one has no registers for it.
    constexpr bool early = chunks == 1;
    const std::int64_t first = threadIdx.x * 8;
    Packed before{};
    if (early && first < job.x.width) before = ask(job.residual, start_of(job.residual, row), first);
    const float rstd = get(job.rstd, start_of(job.rstd, row));
    const float mean = job.mean.data ? get(job.mean, start_of(job.mean, row)) : 0;
    Eight n[chunks], g[chunks];
    float along = 0, sum = 0;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const std::int64_t column = (threadIdx.x + c * blockDim.x) * 8;
      if (column >= job.x.width) {
        n[c] = g[c] = Eight{};
        continue;
      }
      const Packed x = ask(job.x, start_of(job.x, row), column),
                   dy = ask(job.dy, start_of(job.dy, row), column), gains = ask(job.gain, 0, column);
      n[c] = unpack(job.x, column, x);
      g[c] = unpack(job.dy, column, dy);
      const Eight gain = unpack(job.gain, column, gains);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        n[c].x[i] = (n[c].x[i] - mean) * rstd;
        dgain[c][i] += g[c].x[i] * n[c].x[i];
        dbias[c][i] += g[c].x[i];
        g[c].x[i] = column + i < job.x.width ? g[c].x[i] * (gain.x[i] + job.plus) : 0.0F;
        along += g[c].x[i] * n[c].x[i];
        sum += g[c].x[i];
      }
    }
    const TwoSums all = over_block_of_row({along, sum}, scratch, turn);
    along = all.along / width;
    sum = job.centered ? all.sum / width : 0;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const std::int64_t column = (threadIdx.x + c * blockDim.x) * 8;
      if (column >= job.x.width) continue;
      const Eight residual = early ? unpack(job.residual, column, before)
                                   : read(job.residual, start_of(job.residual, row), column);
#pragma unroll
      for (int i = 0; i < 8; ++i) g[c].x[i] = residual.x[i] + rstd * (g[c].x[i] - sum - n[c].x[i] * along);
      write(job.dx, start_of(job.dx, row), column, g[c]);
      write(job.rounded, start_of(job.rounded, row), column, g[c]);
    }
  }
  if (job.dgain) put_line(job.dgain, job.x.width, dgain);
  if (job.dbias) put_line(job.dbias, job.x.width, dbias);
}

}  // namespace

void CudaKernels::norm(const Tensor& y, const NormStats& stats, const Tensor& x, const NormWeights& weights,
                       const NormArgs& how) {
  NormForward job = forward_of(y, stats, weights, how);
  job.x = rows_of(x);
  launch_forward(queue(), job);
}

void CudaKernels::sum_norm(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                           const NormArgs& how) {
  NormForward job = forward_of(out.y, out.stats, weights, how);
  job.x = rows_of(in.x);
  job.before = {rows_of(in.bias), rows_of(in.residual), rows_of(out.sum), drops_of(in.dropout)};
  launch_forward(queue(), job);
}

void CudaKernels::norm_backward(const NormGrads& grads, const Tensor& dy, const Tensor& residual,
                                const NormSaved& saved, const NormArgs& how) {
  if (grads.dgain && grads.dgain.rank() == 2) {
    const std::int64_t sets = grads.dgain.dim(0), rows = saved.x.dim(0) / sets;
    for (std::int64_t i = 0; i < sets; ++i) {
      const auto some = [&](const Tensor& t) { return t ? t.slice(0, i * rows, rows) : t; };
      const NormSaved piece{some(saved.x), {some(saved.stats.mean), some(saved.stats.rstd)}, saved.gain};
      const Tensor dbias = grads.dbias ? grads.dbias.at(0, i) : Tensor();
      const NormGrads into{some(grads.dx), grads.dgain.at(0, i), dbias, some(grads.rounded)};
      norm_backward(into, some(dy), some(residual), piece, how);
    }
    return;
  }
  const Rows x = rows_of(saved.x);
  if (x.count == 0 || x.width == 0) return;
  const Shape space = lines_of_norm(saved.x);
  const int slabs = int(space[0]);
  const auto lines = [&](const Tensor& wanted) { return wanted ? workspace(space) : Tensor(); };
  const Tensor dgain = lines(grads.dgain), dbias = lines(grads.dbias);
  const auto floats = [](const Tensor& t) { return elements<float>(t); };
  const NormBackward job{.dx = rows_of(grads.dx),
                         .rounded = rows_of(grads.rounded),
                         .dy = rows_of(dy),
                         .residual = rows_of(residual),
                         .x = x,
                         .mean = saved.stats.mean ? for_every_column(saved.stats.mean, 1) : Rows{},
                         .rstd = for_every_column(saved.stats.rstd, 1),
                         .gain = rows_of(saved.gain),
                         .dgain = floats(dgain),
                         .dbias = floats(dbias),
                         .plus = how.one_plus_gain ? 1.0F : 0.0F,
                         .centered = how.kind == NormKind::layer};
  const gpu::Shape shape{slabs, threads_for(x.width), sizeof(TwoRows)};
  if (x.width > widest_held_row)
    norm_backward_of_wide_rows(queue(), job, slabs);
  else
    gpu::launch(queue(), shape, x.width <= widest_held_row / 4 ? backward<1> : backward<4>, job);
  if (dgain) add_slabs(queue(), {rows_of(grads.dgain), job.dgain, slabs});
  if (dbias) add_slabs(queue(), {rows_of(grads.dbias), job.dbias, slabs});
}

}  // namespace weft
