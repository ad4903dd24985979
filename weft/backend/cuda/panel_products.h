// What products of panels have in common: a block takes a rectangle of a result, the panels that are summed
// over come in turns, and each element is one chain of sums over them, so no order but its own shows: neither
// how many rows and columns there are nor where they lie. There are two ways: by warps and by warpgroups.
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

/// A result on its way from fragments to rows. Pieces of 8 numbers lie as a panel's do.
template <class Way>
struct alignas(128) Square {
  float numbers[Way::rows * Way::columns];
  __device__ __forceinline__ float* piece(int row, int piece) {
    return numbers + row * Way::columns + (piece ^ row % 8) * 8;
  }
};

/// Panels, and the result when they are done with.
template <class Way, bool left_by_depth, bool right_by_depth>
struct PanelPair {
  Panel<left_by_depth, Way::rows> left;
  Panel<right_by_depth, Way::columns> right;
};
template <class Way, bool left_by_depth, bool right_by_depth>
union PanelTurns {
  PanelPair<Way, left_by_depth, right_by_depth> turns[Way::turns];
  Square<Way> result;
};

/// Where a block's panels come from.
template <class Way, bool left_by_depth, bool right_by_depth>
struct PanelSources {
  PanelSource<left_by_depth, Way::rows, Way::threads> left;
  PanelSource<right_by_depth, Way::columns, Way::threads> right;

  __device__ __forceinline__ PanelSources(const Corner& a, const Corner& b) : left(a), right(b) {}
  __device__ __forceinline__ void fetch(PanelPair<Way, left_by_depth, right_by_depth>& to) {
    cuda::fetch(to.left, left);
    cuda::fetch(to.right, right);
  }
};

/// What a block has of a result, from its first row and column on.
struct PanelExtent {
  std::int64_t rows, columns, depth;
  __device__ __forceinline__ int panels() const { return int((depth + panel_depth - 1) / panel_depth); }
};

/// Blocks along rows, or columns.
constexpr int blocks_of(std::int64_t elements, int of) { return int((elements + of - 1) / of); }

/// A block's place in a result: where its first row begins there, that of its bias, and rows that are left.
struct PanelPlace {
  std::int64_t start, bias, column, rows;
};
template <class Way>
__device__ __forceinline__ void put_rows(const PanelResult& to, Square<Way>& result,
                                         const PanelPlace& place) {
  constexpr int pieces = Way::columns / 8;
#pragma unroll 1
  for (int i = int(threadIdx.x); i < Way::rows * pieces; i += Way::threads) {
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
