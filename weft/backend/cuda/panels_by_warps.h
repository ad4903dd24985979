// Products of panels by warps: four of them share a result of 128 x 128 in quarters of 64 x 64, each in
// d-fragments (attention_tiles.h has their order).
#pragma once

#include "weft/backend/cuda/panel_products.h"

namespace weft::cuda {

inline constexpr int quarter = 64;

/// The a-fragment of rows [row, row + 16) of the left operand, at depth [k, k + 16).
template <bool by_depth, int width>
__device__ __forceinline__ void load_left(std::uint32_t (&out)[4], Panel<by_depth, width>& panel, int row,
                                          int k) {
  const int lane = int(threadIdx.x) % 32;
  if constexpr (by_depth)
    gpu::load_matrices<true>(out, panel.piece(k + lane % 8 + lane / 16 * 8, row / 8 + lane / 8 % 2));
  else
    gpu::load_matrices(out, panel.piece(row + lane % 16, k / 8 + lane / 16));
}

/// Two b-fragments, of columns [column, column + 16) of the right operand, at depth [k, k + 16).
template <bool by_depth, int width>
__device__ __forceinline__ void load_right(std::uint32_t (&out)[4], Panel<by_depth, width>& panel, int column,
                                           int k) {
  const int lane = int(threadIdx.x) % 32;
  if constexpr (by_depth)
    gpu::load_matrices<true>(out, panel.piece(k + lane % 16, column / 8 + lane / 16));
  else
    gpu::load_matrices(out, panel.piece(column + lane % 8 + lane / 16 * 8, k / 8 + lane / 8 % 2));
}

using Quarter = float[quarter / 16][quarter / 8][4];

/// Where a warp's quarter begins.
__device__ __forceinline__ int quarter_row() { return int(threadIdx.x) / 64 * quarter; }
__device__ __forceinline__ int quarter_column() { return int(threadIdx.x) / 32 % 2 * quarter; }

/// sums += left right at depth [k, k + 16), of this warp's quarter.
template <class Half, class Left, class Right>
__device__ __forceinline__ void add_sixteen(Quarter& sums, Left& left, Right& right, int k) {
  const int row0 = quarter_row(), column0 = quarter_column();
  std::uint32_t a[quarter / 16][4];
#pragma unroll
  for (int m = 0; m < quarter / 16; ++m) load_left(a[m], left, row0 + 16 * m, k);
#pragma unroll
  for (int n = 0; n < quarter / 8; n += 2) {
    std::uint32_t b[4];
    load_right(b, right, column0 + 8 * n, k);
#pragma unroll
    for (int m = 0; m < quarter / 16; ++m) {
      gpu::multiply<Half>(sums[m][n], a[m], b[0], b[1]);
      gpu::multiply<Half>(sums[m][n + 1], a[m], b[2], b[3]);
    }
  }
}

/// sums += left right, of this warp's quarter, over so much of the panels: behind it are zeros.
template <class Half, class Left, class Right>
__device__ __forceinline__ void add_product(Quarter& sums, Left& left, Right& right, std::int64_t deep) {
  if (deep >= panel_depth) {
#pragma unroll
    for (int k = 0; k < panel_depth; k += 16) add_sixteen<Half>(sums, left, right, k);
  } else {
#pragma unroll 1
    for (int k = 0; k < int(deep); k += 16) add_sixteen<Half>(sums, left, right, k);
  }
}

template <class To>
__device__ __forceinline__ void put_quarter(To& to, const Quarter& sums) {
  const int lane = int(threadIdx.x) % 32, row0 = quarter_row() + lane / 4, piece0 = quarter_column() / 8;
#pragma unroll
  for (int m = 0; m < quarter / 16; ++m)
#pragma unroll
    for (int n = 0; n < quarter / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        gpu::store(to.piece(row0 + 16 * m + 8 * half, piece0 + n) + lane % 4 * 2,
                   float2{sums[m][n][2 * half], sums[m][n][2 * half + 1]});
}

/// For every GPU. The next panels are under way while these are used.
struct ByWarps {
  static constexpr int rows = 128, columns = 128, threads = 128, turns = 2, blocks_at_once = 2;
  static constexpr bool compiled = true;

  template <class Half, bool left_by_depth, bool right_by_depth>
  static __device__ __forceinline__ void multiply(PanelTurns<ByWarps, left_by_depth, right_by_depth>& shared,
                                                  PanelSources<ByWarps, left_by_depth, right_by_depth>& from,
                                                  const PanelExtent& have) {
    const int count = have.panels();
    if (count > 0) from.fetch(shared.turns[0]);
    gpu::commit_copies();
    Quarter sums = {};
    const bool reached = quarter_row() < have.rows && quarter_column() < have.columns;
    for (int t = 0; t < count; ++t) {
      if (t + 1 < count) from.fetch(shared.turns[(t + 1) % turns]);
      gpu::commit_copies();
      gpu::wait_copies<1>();
      __syncthreads();
      if (reached)
        add_product<Half>(sums, shared.turns[t % turns].left, shared.turns[t % turns].right,
                          have.depth - std::int64_t(t) * panel_depth);
      __syncthreads();
    }
    gpu::wait_copies<0>();
    if (reached) put_quarter(shared.result, sums);
    __syncthreads();
  }
};

}  // namespace weft::cuda
