// What is random: dropout, and numbers by their place in a matrix.
// nvcc: -fmad=false
//
// No product and sum are fused here: normal numbers have bits of their own, the same on every backend.
#include "weft/backend/cuda/drops.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/base/normal_pair.h"

namespace weft {
namespace {

using namespace cuda;

struct DropAdd {
  Rows out, x, bias, residual;
  Drops drops;
  std::int64_t chunks, total;
};

__global__ void __launch_bounds__(256) drop_and_add(DropAdd job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.total) return;
  const std::int64_t row = row_of(chunk, job.chunks, job.total), column = (chunk - row * job.chunks) * 8;
  Eight e = read(job.x, start_of(job.x, row), column);
  const Eight bias = read(job.bias, 0, column);
  const Eight residual = read(job.residual, start_of(job.residual, row), column);
#pragma unroll
  for (int i = 0; i < 8; ++i) e.x[i] += bias.x[i];
  drop(job.drops, row, column, e);
#pragma unroll
  for (int i = 0; i < 8; ++i) e.x[i] += residual.x[i];
  write(job.out, start_of(job.out, row), column, e);
}

void run(Queue& queue, DropAdd job) {
  job.chunks = chunks_of(job.x.width);
  job.total = job.chunks * job.x.count;
  if (job.total > 0) gpu::launch(queue, {(job.total + 255) / 256, 256}, drop_and_add, job);
}

/// A matrix by places: a pair of elements a thread, as normal numbers come.
struct Places {
  Rows out;
  std::int64_t row, column, columns;
  Draw draw;
  float first, second;  // mean and deviation, or low and high
  bool normal;
  std::int64_t total;
};

__global__ void __launch_bounds__(256) draw_all(Places job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.total) return;
  const std::int64_t row = i / job.out.width, column = i - row * job.out.width;
  const auto element = std::uint64_t((job.row + row) * job.columns + job.column + column);
  const PhiloxCounter four = job.draw.block(element >> 2);
  const bool later = (element & 2) != 0;
  const std::uint32_t a = later ? four[2] : four[0], b = later ? four[3] : four[1];
  float x;
  if (job.normal) {
    const NormalPair pair = normal_pair(a, b);
    x = job.first + job.second * (element % 2 ? pair.second : pair.first);
  } else {
    x = job.first + (job.second - job.first) * unit_float(element % 2 ? b : a);
  }
  put(job.out, start_of(job.out, row) + column * job.out.step, x);
}

struct Spread {
  float first, second;
  bool normal;
};
void draw(Queue& queue, const Tensor& out, const RandomBlock& block, Spread spread) {
  if (out.elements() == 0) return;
  gpu::launch(queue, {(out.elements() + 255) / 256, 256}, draw_all,
              Places{rows_of(out), block.row, block.column, block.columns, Draw(block.at), spread.first,
                     spread.second, spread.normal, out.elements()});
}

}  // namespace

void CudaKernels::dropout(const Tensor& y, const Tensor& x, const DropoutArgs& how) {
  run(queue(), {rows_of(y), rows_of(x), {}, {}, drops_of(how), 0, 0});
}

void CudaKernels::bias_dropout_add(const Tensor& out, const Tensor& x, const Tensor& bias,
                                   const Tensor& residual, const DropoutArgs& how) {
  run(queue(), {rows_of(out), rows_of(x), rows_of(bias), rows_of(residual), drops_of(how), 0, 0});
}

void CudaKernels::random_normal(const Tensor& out, float mean, float deviation, const RandomBlock& block) {
  draw(queue(), out, block, {mean, deviation, true});
}

void CudaKernels::random_uniform(const Tensor& out, float low, float high, const RandomBlock& block) {
  draw(queue(), out, block, {low, high, false});
}

}  // namespace weft
