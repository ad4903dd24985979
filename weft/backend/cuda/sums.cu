// Sums over rows and over columns, in an order that follows from the shape alone.
#include "weft/backend/cuda/columns.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

/// A block takes 32 chunks of columns and every slabs-th eight rows; its eight warps take a row each.
struct Columns {
  Rows dy;
  float* partial;  // [slabs, width]
  int slabs;
};

struct Parts {
  float sums[8][32][8];  // by warp and lane
};

__global__ void __launch_bounds__(256) sum_columns(Columns job) {
  const std::int64_t slab = blockIdx.x % job.slabs;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const std::int64_t column = (std::int64_t(blockIdx.x) / job.slabs * 32 + lane) * 8;
  float sums[8] = {};
  constexpr int at_once = 4;
  const std::int64_t step = std::int64_t(job.slabs) * 8;
  for (std::int64_t row = slab * 8 + warp; row < job.dy.count; row += at_once * step) {
    Packed packed[at_once] = {};
#pragma unroll
    for (int r = 0; r < at_once; ++r)
      if (row + r * step < job.dy.count) packed[r] = ask(job.dy, start_of(job.dy, row + r * step), column);
#pragma unroll
    for (int r = 0; r < at_once; ++r) {
      const Eight e = unpack(job.dy, column, packed[r]);  // zeros behind the last row
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i] += e.x[i];
    }
  }
  auto& parts = gpu::shared<Parts>();
#pragma unroll
  for (int i = 0; i < 8; ++i) parts.sums[warp][lane][i] = sums[i];
  __syncthreads();
  if (warp != 0) return;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) sum += parts.sums[w][lane][i];
    if (column + i < job.dy.width) job.partial[slab * job.dy.width + column + i] = sum;
  }
}

struct Dots {
  Rows out, a, b;
};

/// A row a warp.
__global__ void __launch_bounds__(256) dot_all(Dots job) {
  const std::int64_t row = std::int64_t(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = int(threadIdx.x) % 32;
  if (row >= job.a.count) return;
  const std::int64_t a = start_of(job.a, row), b = start_of(job.b, row);
  float sum = 0;
  for (std::int64_t column = lane * 8; column < job.a.width; column += 256) {
    const Packed ours = ask(job.a, a, column), theirs = ask(job.b, b, column);
    const Eight x = unpack(job.a, column, ours), y = unpack(job.b, column, theirs);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += x.x[i] * y.x[i];
  }
  sum = over_warp(sum, Plus{});
  if (lane == 0) put(job.out, start_of(job.out, row), sum);
}

}  // namespace

namespace cuda {

struct OfWarps {
  float sums[8][32];
};

/// A block takes 32 columns, and each of its warps every eighth slab of them.
__global__ void __launch_bounds__(256) add_up_slabs(Slabs job) {
  auto& parts = gpu::shared<OfWarps>();
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const std::int64_t column = std::int64_t(blockIdx.x) * 32 + lane;
  const bool inside = column < job.total.width;
  float sum = 0;
#pragma unroll 8
  for (int slab = warp; slab < job.slabs; slab += 8)
    if (inside) sum += job.partial[std::int64_t(slab) * job.total.width + column];
  parts.sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || !inside) return;
  sum = 0;
#pragma unroll
  for (int w = 0; w < 8; ++w) sum += parts.sums[w][lane];
  const std::int64_t at = column * job.total.step;
  put(job.total, at, get(job.total, at) + sum);
}

void add_slabs(Queue& queue, const Slabs& job) {
  gpu::launch(queue, {(job.total.width + 31) / 32, 256, sizeof(OfWarps)}, add_up_slabs, job);
}

}  // namespace cuda

void CudaKernels::sum_rows(const Tensor& dbias, const Tensor& dy) {
  const Rows rows = rows_of(dy);
  if (rows.count == 0 || rows.width == 0) return;
  const Tensor partial = workspace(lines_of_columns(dy, exact()));
  const int slabs = int(partial.dim(0));
  const auto sums = elements<float>(partial);
  const std::int64_t blocks = (rows.width + 255) / 256 * slabs;
  gpu::launch(queue(), {blocks, 256, sizeof(Parts)}, sum_columns, Columns{rows, sums, slabs});
  add_slabs(queue(), {rows_of(dbias), sums, slabs});
}

void CudaKernels::dot_rows(const Tensor& out, const Tensor& a, const Tensor& b) {
  const Rows rows = rows_of(a);
  if (rows.count == 0) return;
  gpu::launch(queue(), {(rows.count + 7) / 8, 256}, dot_all,
              Dots{for_every_column(out, 1), rows, rows_of(b)});
}

}  // namespace weft
