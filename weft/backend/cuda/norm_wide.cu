// Layer and RMS norms of rows that no block holds in registers: what is wanted again is read again.
#include "weft/backend/cuda/blackwell.h"
#include "weft/backend/cuda/norm_rows.h"
#include "weft/backend/cuda/reduce.h"

namespace weft::cuda {
namespace {

constexpr int threads = 256, blocks = blackwell ? 1 : 3;

/// Calls act(column) with the first of every eight columns of a row that are this thread's.
template <class Act>
__device__ __forceinline__ void for_columns(std::int64_t width, const Act& act) {
#pragma unroll 1
  for (std::int64_t column = threadIdx.x * 8; column < width; column += threads * 8) act(column);
}

/// x is what is normalized, when it is there: a thread reads what it has written itself.
__global__ void __launch_bounds__(threads, blocks) forward(NormForward job, Rows x) {
  const std::int64_t row = blockIdx.x, width = job.x.width;
  auto& scratch = gpu::shared<Scratch>();
  float sum = 0;
  for_columns(width, [&](std::int64_t column) {
    const Eight e = input(job, row, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += e.x[i];
  });
  const std::int64_t start = start_of(x, row);
  const float mean = job.centered ? over_block(sum, scratch, 0, Plus{}) / float(width) : 0;
  float squares = 0;
  for_columns(width, [&](std::int64_t column) {
    const Eight e = read(x, start, column);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < width) squares += (e.x[i] - mean) * (e.x[i] - mean);
  });
  const float rstd = 1 / sqrtf(over_block(squares, scratch, 0, Plus{}) / float(width) + job.epsilon);
  if (threadIdx.x == 0) {
    put(job.rstd, start_of(job.rstd, row), rstd);
    if (job.mean.data) put(job.mean, start_of(job.mean, row), mean);
  }
  const std::int64_t to = start_of(job.y, row);
  for_columns(width, [&](std::int64_t column) {
    Eight e = read(x, start, column);
    const Eight gain = read(job.gain, 0, column), bias = read(job.bias, 0, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) e.x[i] = (e.x[i] - mean) * rstd * (gain.x[i] + job.plus) + bias.x[i];
    write(job.y, to, column, e);
  });
}

/// What eight columns of a row are: n, and dy.
struct Normalized {
  Eight n, dy;
};
struct Row {
  std::int64_t number;
  float mean, rstd;
};
__device__ __forceinline__ Row row_of(const NormBackward& job, std::int64_t row) {
  return {row, job.mean.data ? get(job.mean, start_of(job.mean, row)) : 0,
          get(job.rstd, start_of(job.rstd, row))};
}
__device__ __forceinline__ Normalized normalized(const NormBackward& job, const Row& row,
                                                 std::int64_t column) {
  const Packed x = ask(job.x, start_of(job.x, row.number), column),
               dy = ask(job.dy, start_of(job.dy, row.number), column);
  Normalized out{unpack(job.x, column, x), unpack(job.dy, column, dy)};
#pragma unroll
  for (int i = 0; i < 8; ++i) out.n.x[i] = (out.n.x[i] - row.mean) * row.rstd;
  return out;
}

/// The lines of this block's slab of rows.
__device__ __forceinline__ void put_lines(const NormBackward& job, std::int64_t column) {
  Eight dgain{}, dbias{};
#pragma unroll 1
  for (std::int64_t row = blockIdx.x; row < job.x.count; row += gridDim.x) {
    const Normalized e = normalized(job, row_of(job, row), column);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      dgain.x[i] += e.dy.x[i] * e.n.x[i];
      dbias.x[i] += e.dy.x[i];
    }
  }
  const std::int64_t to = blockIdx.x * job.x.width + column;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (column + i >= job.x.width) continue;
    if (job.dgain) job.dgain[to + i] = dgain.x[i];
    if (job.dbias) job.dbias[to + i] = dbias.x[i];
  }
}

// Lines first: dx may come in the place of dy.
__global__ void __launch_bounds__(threads, blocks) backward(NormBackward job) {
  const std::int64_t width = job.x.width;
  auto& scratch = gpu::shared<Scratch>();
  if (job.dgain || job.dbias) for_columns(width, [&](std::int64_t column) { put_lines(job, column); });
#pragma unroll 1
  for (std::int64_t number = blockIdx.x; number < job.x.count; number += gridDim.x) {
    const Row row = row_of(job, number);
    const auto slopes = [&](std::int64_t column) {
      Normalized e = normalized(job, row, column);
      const Eight gain = read(job.gain, 0, column);
#pragma unroll
      for (int i = 0; i < 8; ++i) e.dy.x[i] = column + i < width ? e.dy.x[i] * (gain.x[i] + job.plus) : 0.0F;
      return e;
    };
    float along = 0, sum = 0;
    for_columns(width, [&](std::int64_t column) {
      const Normalized e = slopes(column);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        along += e.dy.x[i] * e.n.x[i];
        sum += e.dy.x[i];
      }
    });
    along = over_block(along, scratch, 0, Plus{}) / float(width);
    sum = job.centered ? over_block(sum, scratch, 0, Plus{}) / float(width) : 0;
    for_columns(width, [&](std::int64_t column) {
      Normalized e = slopes(column);
      const Eight residual = read(job.residual, start_of(job.residual, number), column);
#pragma unroll
      for (int i = 0; i < 8; ++i) e.dy.x[i] = residual.x[i] + row.rstd * (e.dy.x[i] - sum - e.n.x[i] * along);
      write(job.dx, start_of(job.dx, number), column, e.dy);
      write(job.rounded, start_of(job.rounded, number), column, e.dy);
    });
  }
}

}  // namespace

void norm_of_wide_rows(Queue& queue, const NormForward& job) {
  const Rows& x = job.before.sum.data ? job.before.sum : job.x;
  gpu::launch(queue, {job.x.count, threads, sizeof(Scratch)}, forward, job, x);
}

void norm_backward_of_wide_rows(Queue& queue, const NormBackward& job, int slabs) {
  gpu::launch(queue, {slabs, threads, sizeof(Scratch)}, backward, job);
}

}  // namespace weft::cuda
