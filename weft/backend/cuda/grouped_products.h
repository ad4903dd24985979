// Products in groups of rows by panels, in either way (panel_products.h): all groups in one launch. A block
// finds its group by the offsets, which lie on the GPU.
#pragma once

#include "weft/backend/cuda/panel_products.h"
#include "weft/backend/cuda/queue.h"

namespace weft::cuda {

struct GroupedProduct {
  PanelResult out;
  Matrix a, b;
  std::int64_t m, k;            // m is of a group's gradient, k of the others
  const std::int64_t* offsets;  // [groups + 1]
  std::int64_t groups;
};

/// A group, its rows, and a block's place in its result. Rows behind the last group are one more, of no
/// products.
struct Spot {
  std::int64_t group, first, end;
  std::int64_t row, column;
};

/// Of rows by group, of a GroupedProduct or what is made like it: a group has as many rows of blocks as its
/// rows need, and those of a group that stand above each other come together, since they read the same
/// weights. Each warp counts for itself, 32 groups at a time. A group of -1 behind all: there are as many
/// blocks as groups could want.
template <class Way, class Job>
__device__ __forceinline__ Spot spot_of_rows(const Job& job) {
  const int across = blocks_of(job.out.width, Way::columns), line = int(blockIdx.x) / across;
  const int lane = int(threadIdx.x) % 32;
  int before = 0;
  for (std::int64_t group0 = 0; group0 < job.groups; group0 += 32) {
    const std::int64_t group = group0 + lane < job.groups ? group0 + lane : job.groups - 1;
    const std::int64_t first = job.offsets[group], end = job.offsets[group + 1];
    const int mine = group0 + lane < job.groups ? blocks_of(end - first, Way::rows) : 0;
    int upto = mine;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
      const int more = __shfl_up_sync(~0U, upto, unsigned(by));
      if (lane >= by) upto += more;
    }
    const unsigned behind = __ballot_sync(~0U, before + upto > line);
    if (behind != 0) {
      const int at = 32 - __popc(behind), down = __shfl_sync(~0U, mine, at);
      const int begin = before + __shfl_sync(~0U, upto, at) - down;
      const int place = int(blockIdx.x) - begin * across;
      const std::int64_t found = group0 + at;
      return {found, job.offsets[found], job.offsets[found + 1], place % down * Way::rows,
              place / down * Way::columns};
    }
    before += __shfl_sync(~0U, upto, 31);
  }
  const std::int64_t end = job.offsets[job.groups];
  const int down = blocks_of(job.m - end, Way::rows), place = int(blockIdx.x) - before * across;
  if (job.out.accumulate || place >= down * across) return {-1, 0, 0, 0, 0};
  return {job.groups, end, job.m, place % down * Way::rows, place / down * Way::columns};
}

/// Of gradients, which are of one size: m x n of each group.
template <class Way, class Job>
__device__ __forceinline__ Spot spot_of_gradient(const Job& job) {
  const int across = blocks_of(job.out.width, Way::columns), down = blocks_of(job.m, Way::rows);
  const int group = int(blockIdx.x) / (across * down), place = int(blockIdx.x) - group * across * down;
  return {group, job.offsets[group], job.offsets[group + 1], place % down * Way::rows,
          place / down * Way::columns};
}

template <class Way>
__device__ __forceinline__ void put_zeros(const PanelResult& to, const Spot& spot) {
  constexpr int pieces = Way::columns / 8;
#pragma unroll 1
  for (int i = int(threadIdx.x); i < Way::rows * pieces; i += Way::threads) {
    const std::int64_t row = spot.first + spot.row + i / pieces, column = spot.column + i % pieces * 8;
    if (row < spot.end && column < to.width) write(to.rows, row * to.stride, column, Eight{});
  }
}

template <class Way, class Half, bool gradient, bool right_by_depth>
__global__ void __launch_bounds__(Way::threads, Way::blocks_at_once) multiply_groups(GroupedProduct job) {
  if constexpr (!Way::compiled) return;
  auto& shared = gpu::shared<PanelTurns<Way, gradient, right_by_depth>>();
  const Spot spot = gradient ? spot_of_gradient<Way>(job) : spot_of_rows<Way>(job);
  if (spot.group < 0) return;
  if (!gradient && spot.group == job.groups) return put_zeros<Way>(job.out, spot);
  const std::int64_t depth = gradient ? spot.end - spot.first : job.k;
  if (gradient && depth == 0 && job.out.accumulate) return;
  const Matrix b = gradient ? job.b : job.b.of(spot.group);
  PanelSources<Way, gradient, right_by_depth> from(
      gradient ? job.a.from(spot.first, spot.row, spot.end) : job.a.from(spot.first + spot.row, 0, spot.end),
      gradient         ? b.from(spot.first, spot.column, spot.end)
      : right_by_depth ? b.from(0, spot.column, job.k)
                       : b.from(spot.column, 0, job.out.width));
  const std::int64_t rows = (gradient ? job.m : spot.end - spot.first) - spot.row;
  Way::template multiply<Half>(shared, from, {rows, job.out.width - spot.column, depth});
  const std::int64_t row0 = gradient ? spot.row : spot.first + spot.row;
  put_rows(job.out, shared.result,
           {.start = (gradient ? spot.group * job.out.stack : 0) + row0 * job.out.stride,
            .bias = job.out.bias.data ? start_of(job.out.bias, spot.group) : 0,
            .column = spot.column,
            .rows = rows});
}

/// As many as groups could want: rows by group begin a line of blocks with every group, and with what is
/// behind them.
template <class Way, class Job>
std::int64_t blocks_in_groups(const Job& job, bool gradient) {
  const std::int64_t lines =
      gradient ? blocks_of(job.m, Way::rows) * job.groups : job.m / Way::rows + job.groups + 1;
  return blocks_of(job.out.width, Way::columns) * lines;
}

template <class Way, class Half, bool gradient, bool right_by_depth>
void launch_groups(Queue& queue, const GroupedProduct& job) {
  gpu::launch(
      queue,
      {blocks_in_groups<Way>(job, gradient), Way::threads, sizeof(PanelTurns<Way, gradient, right_by_depth>)},
      multiply_groups<Way, Half, gradient, right_by_depth>, job);
}
template <class Way, class Half>
void launch_groups(Queue& queue, const GroupedProduct& job, const MatmulArgs& how) {
  if (how.a == Read::transposed)
    launch_groups<Way, Half, true, true>(queue, job);
  else if (how.b == Read::as_is)
    launch_groups<Way, Half, false, true>(queue, job);
  else
    launch_groups<Way, Half, false, false>(queue, job);
}
template <class Way>
void launch_groups(Queue& queue, const GroupedProduct& job, Dtype dtype, const MatmulArgs& how) {
  dtype == Dtype::bf16 ? launch_groups<Way, bf16>(queue, job, how) : launch_groups<Way, f16>(queue, job, how);
}

/// By warpgroups, which some GPUs have.
void multiply_groups_by_warpgroups(Queue& queue, const GroupedProduct& job, Dtype dtype,
                                   const MatmulArgs& how);

}  // namespace weft::cuda
