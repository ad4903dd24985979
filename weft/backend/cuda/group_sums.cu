// Sums of columns by groups, all in one launch. A block has 256 columns of a group, and a warp of it every
// eighth slab of rows, which it adds up as blocks and lines of sum_rows do: so a rank that does not see where
// groups begin has the bits of those that do. No line is written.
#include "weft/backend/cuda/group_sums.h"

#include <limits>

#include "weft/backend/cuda/rows.h"
#include "weft/backend/cuda/slabs.h"

namespace weft::cuda {
namespace {

constexpr int threads = 256, eight = 8, at_once = 4;

struct GroupSums {
  Rows out, x, factor;
  const std::int64_t* offsets;
  int across, most_slabs;
  bool accumulate;
};

struct OfWarps {
  float sums[eight][eight][32];  // by warp, column of a lane, lane
};

/// What a thread adds: its columns of rows [row, end), every so many.
struct Walk {
  std::int64_t row, end, step, column;
};

/// sums += those of the rows from here on, and of the next three, each by itself before they meet.
__device__ __forceinline__ void add_rows(float (&sums)[eight], const GroupSums& job, const Walk& walk,
                                         float factor) {
  float each[at_once][eight] = {};
#pragma unroll 1
  for (std::int64_t row = walk.row; row < walk.end; row += walk.step) {
    Packed packed[at_once] = {};
#pragma unroll
    for (int r = 0; r < at_once; ++r)
      if (row + r < walk.end) packed[r] = ask(job.x, start_of(job.x, row + r), walk.column);
#pragma unroll
    for (int r = 0; r < at_once; ++r) {
      const Eight e = unpack(job.x, walk.column, packed[r]);  // zeros behind the last row
#pragma unroll
      for (int i = 0; i < eight; ++i) each[r][i] = fmaf(factor, e.x[i], each[r][i]);
    }
  }
#pragma unroll
  for (int r = 0; r < at_once; ++r)
#pragma unroll
    for (int i = 0; i < eight; ++i) sums[i] += each[r][i];
}

__global__ void __launch_bounds__(threads, 2) sum_by_group(GroupSums job) {
  const std::int64_t group = blockIdx.x / unsigned(job.across);
  const std::int64_t first = job.offsets[group], end = job.offsets[group + 1], eights = (end - first + 7) / 8;
  if (eights == 0 && job.accumulate) return;
  const int slabs = eights < job.most_slabs ? int(eights) : job.most_slabs;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const std::int64_t columns = blockIdx.x % unsigned(job.across) * std::int64_t(threads);
  const float factor = slabs > 0 ? get(job.factor, 0) : 0;
  float sums[eight] = {};
#pragma unroll 1
  for (int slab = warp; slab < slabs; slab += eight) {
    float of_slab[eight] = {};
#pragma unroll 1
    for (int r = 0; r < eight; r += at_once)
      add_rows(of_slab, job, {first + slab * eight + r, end, std::int64_t(slabs) * eight, columns + lane * 8},
               factor);
#pragma unroll
    for (int i = 0; i < eight; ++i) sums[i] += of_slab[i];
  }
  auto& parts = gpu::shared<OfWarps>();
#pragma unroll
  for (int i = 0; i < eight; ++i) parts.sums[warp][i][lane] = sums[i];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < eight; ++w) sum += parts.sums[w][warp][lane];
  const std::int64_t column = columns + lane * 8 + warp;
  if (column >= job.out.width) return;
  const std::int64_t at = start_of(job.out, group) + column * job.out.step;
  put(job.out, at, job.accumulate ? get(job.out, at) + sum : sum);
}

}  // namespace

void sum_groups(Queue& queue, const Tensor& out, const SumsByGroup& of) {
  const GroupSums job{.out = rows_of(out),
                      .x = rows_of(of.x),
                      .factor = rows_of(of.factor),
                      .offsets = elements<std::int64_t>(of.offsets),
                      .across = int((out.dim(-1) + threads - 1) / threads),
                      .most_slabs = slabs_of_columns(std::numeric_limits<std::int32_t>::max(), width_of_any),
                      .accumulate = of.accumulate};
  gpu::launch(queue, {out.dim(0) * job.across, threads, sizeof(OfWarps)}, sum_by_group, job);
}

}  // namespace weft::cuda
