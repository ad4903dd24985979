// Products in groups of rows, as experts ask for them: small floats by tensor cores, all groups in one
// launch; anything else a call a group.
//
// A block takes 128 x 128 of a result. Panels of what is summed come in turns of 64, the next one under way
// while this one is used, and each element is one chain of sums over them, so no order but its own shows.
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/panels.h"
#include "weft/backend/cuda/rows.h"

namespace weft {
namespace {

using namespace cuda;

/// A matrix of small floats, or a stack of them.
struct Matrix {
  const std::uint16_t* numbers;
  std::int64_t stack, stride, columns;

  __device__ __forceinline__ Corner from(std::int64_t row, std::int64_t column, std::int64_t rows) const {
    return {numbers + row * stride + column, stride, rows - row, columns - column};
  }
};

struct GroupedProduct {
  Rows out, bias;
  Matrix a, b;
  std::int64_t out_stack, out_stride, m, n, k;  // m is of a group's gradient, k of the others
  const std::int64_t* offsets;                  // [groups + 1]
  std::int64_t groups;
  bool accumulate;
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
  const int across = blocks_of(job.n), line = int(blockIdx.x) / across;
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
  const int across = blocks_of(job.n), down = blocks_of(job.m);
  const int group = int(blockIdx.x) / (across * down), place = int(blockIdx.x) - group * across * down;
  return {group, job.offsets[group], job.offsets[group + 1], place % down * panel_width,
          place / down * panel_width};
}

/// Panels, and the result when they are done with.
template <bool gradient, bool right_by_depth>
struct Panels {
  Panel<gradient> left;
  Panel<right_by_depth> right;
};
template <bool gradient, bool right_by_depth>
union Shared {
  Panels<gradient, right_by_depth> turns[2];
  Square result;
};

/// Rows of the result that its block has, from its first: job.out's own.
struct Result {
  std::int64_t first, rows;
};
__device__ __forceinline__ void put_rows(const GroupedProduct& job, Square& result, const Spot& spot,
                                         const Result& to) {
  constexpr int pieces = panel_width / 8;
  const std::int64_t bias = job.bias.data ? start_of(job.bias, spot.group) : 0;
#pragma unroll 1
  for (int i = int(threadIdx.x); i < panel_width * pieces; i += panel_threads) {
    const int row = i / pieces;
    const std::int64_t column = spot.column + i % pieces * 8;
    if (row >= to.rows || column >= job.n) continue;
    const std::int64_t start = to.first + row * job.out_stride;
    const float* from = result.piece(row, i % pieces);
    const auto low = gpu::load<float4>(from), high = gpu::load<float4>(from + 4);
    Eight sum{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    const Eight there = job.accumulate ? read(job.out, start, column) : Eight{};
    const Eight added = read(job.bias, bias, column);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum.x[c] = there.x[c] + (sum.x[c] + added.x[c]);
    write(job.out, start, column, sum);
  }
}

template <class Half, bool gradient, bool right_by_depth>
__global__ void __launch_bounds__(panel_threads, 2) multiply_groups(GroupedProduct job) {
  auto& shared = gpu::shared<Shared<gradient, right_by_depth>>();
  const Spot spot = gradient ? spot_of_gradient(job) : spot_of_rows(job);
  if (spot.group < 0) return;
  const std::int64_t depth = gradient ? spot.end - spot.first : job.k;
  if (gradient && depth == 0 && job.accumulate) return;
  Matrix b = job.b;
  b.numbers += gradient ? 0 : spot.group * b.stack;
  PanelSource<gradient> left(gradient ? job.a.from(spot.first, spot.row, spot.end)
                                      : job.a.from(spot.first + spot.row, 0, spot.end));
  PanelSource<right_by_depth> right(gradient         ? b.from(spot.first, spot.column, spot.end)
                                    : right_by_depth ? b.from(0, spot.column, job.k)
                                                     : b.from(spot.column, 0, job.n));
  const auto fetch_panels = [&](int t) {
    fetch(shared.turns[t % 2].left, left);
    fetch(shared.turns[t % 2].right, right);
  };
  const int turns = int((depth + panel_depth - 1) / panel_depth);
  if (turns > 0) fetch_panels(0);
  gpu::commit_copies();
  Quarter sums = {};
  for (int t = 0; t < turns; ++t) {
    if (t + 1 < turns) fetch_panels(t + 1);
    gpu::commit_copies();
    gpu::wait_copies<1>();
    __syncthreads();
    add_product<Half>(sums, shared.turns[t % 2].left, shared.turns[t % 2].right);
    __syncthreads();
  }
  gpu::wait_copies<0>();
  put_quarter(shared.result, sums);
  __syncthreads();
  const std::int64_t rows = (gradient ? job.m : spot.end - spot.first) - spot.row;
  const std::int64_t row0 = gradient ? spot.row : spot.first + spot.row;
  put_rows(job, shared.result, spot,
           {(gradient ? spot.group * job.out_stack : 0) + row0 * job.out_stride, rows});
}

template <class Half, bool gradient, bool right_by_depth>
void launch(Queue& queue, const GroupedProduct& job, std::int64_t blocks) {
  gpu::launch(queue, {blocks, panel_threads, sizeof(Shared<gradient, right_by_depth>)},
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

/// Whether tensor cores can do it: types, and rows that are whole vectors.
bool fits_panels(const Tensor& a, const Tensor& b) {
  if (!is_half(a.dtype())) return false;
  for (const Tensor* each : {&a, &b})
    if (!rows_of(*each).vector || each->dim(-1) % 8 != 0) return false;
  return true;
}

Matrix matrix_of(const Tensor& t) {
  return {static_cast<const std::uint16_t*>(place_of(t)), t.rank() == 3 ? t.stride(0) : 0, t.stride(-2),
          t.dim(-1)};
}

}  // namespace

void CudaKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                                 const MatmulArgs& how) {
  if (out.elements() == 0) return;
  if (!fits_panels(a, b)) return a_call_a_group(out, a, b, groups, how);
  const bool gradient = how.a == Read::transposed;
  const auto count = std::int64_t(groups.offsets.size()) - 1;
  const Tensor offsets = workspace({count + 1}, Dtype::i64);
  // Nothing is waited for: the host's numbers have been taken when this returns.
  device_->copy_from_host(*offsets.storage(), 0, groups.offsets.data(), offsets.bytes()).wait();
  const GroupedProduct job{.out = rows_of(out),
                           .bias = rows_of(how.bias),
                           .a = matrix_of(a),
                           .b = matrix_of(b),
                           .out_stack = gradient ? out.stride(0) : 0,
                           .out_stride = out.stride(-2),
                           .m = out.dim(-2),
                           .n = out.dim(-1),
                           .k = gradient ? 0 : a.dim(1),
                           .offsets = elements<std::int64_t>(offsets),
                           .groups = count,
                           .accumulate = how.accumulate};
  const std::int64_t across = (job.n + panel_width - 1) / panel_width;
  const std::int64_t down = (job.m + panel_width - 1) / panel_width;
  // Rows by group begin a line of blocks with every group.
  const std::int64_t blocks = across * (gradient ? down * count : job.m / panel_width + count);
  a.dtype() == Dtype::bf16 ? launch<bf16>(queue(), job, blocks, how) : launch<f16>(queue(), job, blocks, how);
}

// The host knows where they begin.
void CudaKernels::a_call_a_group(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                                 const MatmulArgs& how) {
  const bool gradient = how.a == Read::transposed;
  const auto offsets = groups.offsets;
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    const std::int64_t first = offsets[g], count = offsets[g + 1] - first;
    MatmulArgs one = how;
    if (how.bias) one.bias = how.bias.at(0, std::int64_t(g));
    if (gradient)
      matmul(out.at(0, std::int64_t(g)), a.slice(0, first, count), b.slice(0, first, count), one);
    else
      matmul(out.slice(0, first, count), a.slice(0, first, count), b.at(0, std::int64_t(g)), one);
  }
}

}  // namespace weft
