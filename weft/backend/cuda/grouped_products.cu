// Products in groups of rows, as experts ask for them: small floats by tensor cores, all groups in one
// launch; anything else a call a group.
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/group_calls.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/panel_products.h"

namespace weft {
namespace {

using namespace cuda;

struct GroupedProduct {
  PanelResult out;
  Matrix a, b;
  std::int64_t m, k;            // m is of a group's gradient, k of the others
  const std::int64_t* offsets;  // [groups + 1]
  std::int64_t groups;
};

/// Blocks along m and n.
__device__ __forceinline__ int blocks_of(std::int64_t elements) {
  return int((elements + panel_width - 1) / panel_width);
}

/// A group, its rows, and a block's place in its result.
struct Spot {
  std::int64_t group, first, end;
  std::int64_t row, column;
};

/// Of rows by group: a group has as many rows of blocks as its rows need, and those of a group that stand
/// above each other come together, since they read the same weights. Each warp counts for itself, 32 groups
/// at a time. A group of -1 behind the last: there are as many blocks as groups could want.
__device__ __forceinline__ Spot spot_of_rows(const GroupedProduct& job) {
  const int across = blocks_of(job.out.width), line = int(blockIdx.x) / across;
  const int lane = int(threadIdx.x) % 32;
  int before = 0;
  for (std::int64_t group0 = 0; group0 < job.groups; group0 += 32) {
    const std::int64_t group = group0 + lane < job.groups ? group0 + lane : job.groups - 1;
    const std::int64_t first = job.offsets[group], end = job.offsets[group + 1];
    const int mine = group0 + lane < job.groups ? blocks_of(end - first) : 0;
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
      return {found, job.offsets[found], job.offsets[found + 1], place % down * panel_width,
              place / down * panel_width};
    }
    before += __shfl_sync(~0U, upto, 31);
  }
  return {-1, 0, 0, 0, 0};
}

/// Of gradients, which are of one size: m x n of each group.
__device__ __forceinline__ Spot spot_of_gradient(const GroupedProduct& job) {
  const int across = blocks_of(job.out.width), down = blocks_of(job.m);
  const int group = int(blockIdx.x) / (across * down), place = int(blockIdx.x) - group * across * down;
  return {group, job.offsets[group], job.offsets[group + 1], place % down * panel_width,
          place / down * panel_width};
}

template <class Half, bool gradient, bool right_by_depth>
__global__ void __launch_bounds__(panel_threads, 2) multiply_groups(GroupedProduct job) {
  auto& shared = gpu::shared<PanelTurns<gradient, right_by_depth>>();
  const Spot spot = gradient ? spot_of_gradient(job) : spot_of_rows(job);
  if (spot.group < 0) return;
  const std::int64_t depth = gradient ? spot.end - spot.first : job.k;
  if (gradient && depth == 0 && job.out.accumulate) return;
  const Matrix b = gradient ? job.b : job.b.of(spot.group);
  const PanelSource<gradient> left(gradient ? job.a.from(spot.first, spot.row, spot.end)
                                            : job.a.from(spot.first + spot.row, 0, spot.end));
  const PanelSource<right_by_depth> right(gradient         ? b.from(spot.first, spot.column, spot.end)
                                          : right_by_depth ? b.from(0, spot.column, job.k)
                                                           : b.from(spot.column, 0, job.out.width));
  const std::int64_t rows = (gradient ? job.m : spot.end - spot.first) - spot.row;
  multiply_panels<Half>(shared, left, right, {rows, job.out.width - spot.column, depth});
  const std::int64_t row0 = gradient ? spot.row : spot.first + spot.row;
  put_rows(job.out, shared.result,
           {.start = (gradient ? spot.group * job.out.stack : 0) + row0 * job.out.stride,
            .bias = job.out.bias.data ? start_of(job.out.bias, spot.group) : 0,
            .column = spot.column,
            .rows = rows});
}

template <class Half, bool gradient, bool right_by_depth>
void launch(Queue& queue, const GroupedProduct& job, std::int64_t blocks) {
  gpu::launch(queue, {blocks, panel_threads, sizeof(PanelTurns<gradient, right_by_depth>)},
              multiply_groups<Half, gradient, right_by_depth>, job);
}
template <class Half>
void launch(Queue& queue, const GroupedProduct& job, std::int64_t blocks, const MatmulArgs& how) {
  if (how.a == Read::transposed)
    launch<Half, true, true>(queue, job, blocks);
  else if (how.b == Read::as_is)
    launch<Half, false, true>(queue, job, blocks);
  else
    launch<Half, false, false>(queue, job, blocks);
}

}  // namespace

void CudaKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                                 const MatmulArgs& how) {
  if (out.elements() == 0) return;
  if (!is_half(a.dtype()))
    return a_call_a_group({out, a, b, groups, how}, [this](const auto&... one) { matmul(one...); });
  const bool gradient = how.a == Read::transposed;
  const std::int64_t count = groups.count();
  Tensor offsets = groups.unseen;
  if (!offsets) {  // nothing is waited for: the host's numbers have been taken when this returns
    offsets = workspace({count + 1}, Dtype::i64);
    device_->copy_from_host(*offsets.storage(), 0, groups.offsets.data(), offsets.bytes()).wait();
  }
  const GroupedProduct job{.out = panel_result(out, how),
                           .a = matrix_of(a),
                           .b = matrix_of(b),
                           .m = out.dim(-2),
                           .k = gradient ? 0 : a.dim(1),
                           .offsets = elements<std::int64_t>(offsets),
                           .groups = count};
  const std::int64_t across = (job.out.width + panel_width - 1) / panel_width;
  const std::int64_t down = (job.m + panel_width - 1) / panel_width;
  // Rows by group begin a line of blocks with every group.
  const std::int64_t blocks = across * (gradient ? down * count : job.m / panel_width + count);
  a.dtype() == Dtype::bf16 ? launch<bf16>(queue(), job, blocks, how) : launch<f16>(queue(), job, blocks, how);
}

}  // namespace weft
