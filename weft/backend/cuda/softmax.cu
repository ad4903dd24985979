// Softmax in the stable form, a row a block; and what a sink takes of one.
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/rowwise.h"

namespace weft {
namespace {

using namespace cuda;

struct Softmax {
  Rows x, y;
};

__global__ void __launch_bounds__(256, 3) soften(Softmax job) {
  const std::int64_t row = blockIdx.x;
  auto& scratch = gpu::shared<Scratch>();
  float max = -INFINITY, sum = 0;
  walk(job.x, row, [&](std::int64_t column, const Eight& e) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < job.x.width && e.x[i] > max) max = e.x[i];
  });
  max = over_block(max, scratch, -INFINITY, Greater{});
  walk(job.x, row, [&](std::int64_t column, const Eight& e) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < job.x.width) sum += expf(e.x[i] - max);
  });
  sum = over_block(sum, scratch, 0, Plus{});
  const float share = max == -INFINITY ? 0 : 1 / sum;
  const std::int64_t start = start_of(job.y, row);
  walk(job.x, row, [&](std::int64_t column, Eight e) {
#pragma unroll
    for (int i = 0; i < 8; ++i) e.x[i] = max != -INFINITY ? expf(e.x[i] - max) * share : 0.0F;
    write(job.y, start, column, e);
  });
}

struct SinkTerm {
  __device__ __forceinline__ void operator()(const float (&in)[3], float (&out)[1]) const {
    out[0] = -in[0] * expf(in[2] - in[1]);
  }
};

}  // namespace

void CudaKernels::sink_terms(const Tensor& terms, const Tensor& lse, const Tensor& sinks) {
  const Rows to = rows_of(terms);
  run_pass<1, 3>(queue(), {to}, {to, rows_of(lse), for_every_row(sinks, to.count)}, SinkTerm{});
}

void CudaKernels::softmax(const Tensor& y, const Tensor& x) {
  const Rows rows = rows_of(x);
  if (rows.count == 0) return;
  gpu::launch(queue(), {rows.count, threads_of_row(rows.width), sizeof(Scratch)}, soften,
              Softmax{rows, rows_of(y)});
}

}  // namespace weft
