// What kernels of norms are asked for, and the row that a norm reads.
#pragma once

#include "weft/backend/cuda/drops.h"
#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/rows.h"

namespace weft::cuda {

struct Sums {  // sum = residual + dropped(x + bias); without data: sum is x
  Rows bias, residual, sum;
  Drops drops;
};
struct NormForward {
  Rows x, y, gain, bias, mean, rstd;
  Sums before;
  float epsilon, plus;  // what is added to the gain
  bool centered;
};

__device__ __forceinline__ Eight input(const NormForward& job, std::int64_t row, std::int64_t column) {
  const Sums& before = job.before;
  const Packed x = ask(job.x, start_of(job.x, row), column), biases = ask(before.bias, 0, column),
               residuals = ask(before.residual, start_of(before.residual, row), column);
  Eight e = unpack(job.x, column, x);
  if (!before.sum.data) return e;
  const Eight bias = unpack(before.bias, column, biases);
  const Eight residual = unpack(before.residual, column, residuals);
#pragma unroll
  for (int i = 0; i < 8; ++i) e.x[i] += bias.x[i];
  drop(job.before.drops, row, column, e);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    e.x[i] = column + i < job.x.width ? rounded(job.before.sum.dtype, e.x[i] + residual.x[i]) : 0.0F;
  write(job.before.sum, start_of(job.before.sum, row), column, e);
  return e;
}

// n = (x - mean) rstd, g = dy gain  =>  dx = rstd (g - [mean of g] - n mean of (g n)); RMS norms have no [..]
struct NormBackward {
  Rows dx, rounded, dy, residual, x, mean, rstd, gain;
  float *dgain, *dbias;  // [slabs, width]
  float plus;
  bool centered;
};

/// Elements of a row that a block holds in registers; longer ones take these.
inline constexpr std::int64_t widest_held_row = 256 * 8 * 4;
void norm_of_wide_rows(Queue& queue, const NormForward& job);
void norm_backward_of_wide_rows(Queue& queue, const NormBackward& job, int slabs);

}  // namespace weft::cuda
