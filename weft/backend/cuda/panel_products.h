// How a block multiplies panels: it takes 128 x 128 of a result. Panels of what is summed come in turns of
// 64, the next one under way while this one is used, and each element is one chain of sums over them, so no
// order but its own shows: neither how many rows and columns there are nor where they lie.
#pragma once

#include "weft/backend/cuda/panels.h"
#include "weft/backend/cuda/rows.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

/// A matrix of small floats, or a stack of them.
struct Matrix {
  const std::uint16_t* numbers;
  std::int64_t stack, stride, columns;
  bool vectors;

  __device__ __forceinline__ Matrix of(std::int64_t i) const {
    return {numbers + i * stack, stack, stride, columns, vectors};
  }
  __device__ __forceinline__ Corner from(std::int64_t row, std::int64_t column, std::int64_t rows) const {
    return {numbers + row * stride + column, stride, rows - row, columns - column, vectors};
  }
};
inline Matrix matrix_of(const Tensor& t) {
  return {static_cast<const std::uint16_t*>(place_of(t)), t.rank() == 3 ? t.stride(0) : 0, t.stride(-2),
          t.dim(-1), rows_of(t).vector && t.dim(-1) % 8 == 0};
}

/// Where results go, one matrix or a stack of them.
struct PanelResult {
  Rows rows, bias;
  std::int64_t stack, stride, width;
  bool accumulate;
};
inline PanelResult panel_result(const Tensor& out, const MatmulArgs& how) {
  return {rows_of(out),   rows_of(how.bias), out.rank() == 3 ? out.stride(0) : 0,
          out.stride(-2), out.dim(-1),       how.accumulate};
}

/// Panels, and the result when they are done with.
template <bool left_by_depth, bool right_by_depth>
struct PanelPair {
  Panel<left_by_depth> left;
  Panel<right_by_depth> right;
};
template <bool left_by_depth, bool right_by_depth>
union PanelTurns {
  PanelPair<left_by_depth, right_by_depth> turns[2];
  Square result;
};

/// What a block has of a result, from its first row and column on.
struct PanelExtent {
  std::int64_t rows, columns, depth;
  /// Whether this warp has some of it.
  __device__ __forceinline__ bool reach_warp() const {
    return quarter_row() < rows && quarter_column() < columns;
  }
};

/// Into shared.result, from where the sources begin.
template <class Half, bool left_by_depth, bool right_by_depth>
__device__ __forceinline__ void multiply_panels(PanelTurns<left_by_depth, right_by_depth>& shared,
                                                PanelSource<left_by_depth> left,
                                                PanelSource<right_by_depth> right, const PanelExtent& have) {
  const auto fetch_panels = [&](int t) {
    fetch(shared.turns[t % 2].left, left);
    fetch(shared.turns[t % 2].right, right);
  };
  const int turns = int((have.depth + panel_depth - 1) / panel_depth);
  if (turns > 0) fetch_panels(0);
  gpu::commit_copies();
  Quarter sums = {};
  const bool reached = have.reach_warp();
  for (int t = 0; t < turns; ++t) {
    if (t + 1 < turns) fetch_panels(t + 1);
    gpu::commit_copies();
    gpu::wait_copies<1>();
    __syncthreads();
    if (reached)
      add_product<Half>(sums, shared.turns[t % 2].left, shared.turns[t % 2].right,
                        have.depth - std::int64_t(t) * panel_depth);
    __syncthreads();
  }
  gpu::wait_copies<0>();
  if (reached) put_quarter(shared.result, sums);
  __syncthreads();
}

/// A block's place in a result: where its first row begins there, that of its bias, and rows that are left.
struct PanelPlace {
  std::int64_t start, bias, column, rows;
};
__device__ __forceinline__ void put_rows(const PanelResult& to, Square& result, const PanelPlace& place) {
  constexpr int pieces = panel_width / 8;
#pragma unroll 1
  for (int i = int(threadIdx.x); i < panel_width * pieces; i += panel_threads) {
    const int row = i / pieces;
    const std::int64_t column = place.column + i % pieces * 8;
    if (row >= place.rows || column >= to.width) continue;
    const std::int64_t start = place.start + row * to.stride;
    const float* from = result.piece(row, i % pieces);
    const auto low = gpu::load<float4>(from), high = gpu::load<float4>(from + 4);
    Eight sum{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    const Eight there = to.accumulate ? read(to.rows, start, column) : Eight{};
    const Eight added = read(to.bias, place.bias, column);
#pragma unroll
    for (int c = 0; c < 8; ++c) sum.x[c] = there.x[c] + (sum.x[c] + added.x[c]);
    write(to.rows, start, column, sum);
  }
}

}  // namespace weft::cuda
