// Panels of 64 x 128 small floats in shared memory, and their products by tensor cores: what products in
// groups, and those of a fixed order, are made of (panel_products.h).
//
// A panel lies as its matrix does: with rows along what is summed, or with columns. Four warps share a
// result of 128 x 128 in quarters of 64 x 64, each in d-fragments (attention_tiles.h has their order).
#pragma once

#include <gpu.h>

namespace weft::cuda {

inline constexpr int panel_width = 128, panel_depth = 64, panel_threads = 128, quarter = 64;

/// The 16-byte pieces of row r lie at piece ^ (r % 8), so that 8 rows of one column of pieces are in 8
/// different groups of banks.
template <bool by_depth>  // rows are along what is summed
struct alignas(128) Panel {
  static constexpr int rows = by_depth ? panel_depth : panel_width;
  static constexpr int columns = by_depth ? panel_width : panel_depth;
  std::uint16_t numbers[rows * columns];
  __device__ __forceinline__ std::uint16_t* piece(int row, int piece) {
    return numbers + row * columns + (piece ^ row % 8) * 8;
  }
};

/// A matrix from where a first panel begins: what is left of it.
struct Corner {
  const std::uint16_t* numbers;
  std::int64_t stride, rows, columns;
  bool vectors;  // eight elements of a row lie side by side at 16 bytes, and no row ends between them
};

/// What a thread fetches of panels that follow one another along what is summed: each call of fetch() takes
/// the next, and counts instead of asking where it lies.
template <bool by_depth>
struct PanelSource {
  using Filled = Panel<by_depth>;
  static constexpr int pieces = Filled::columns / 8, lines_at_once = panel_threads / pieces;
  const std::uint16_t* next;  // its first piece of the next panel
  std::int64_t lines, turn;   // to the row that it fetches after one, and to the panel after it
  int rows, columns;          // left of them from that piece's on; what lies behind them is not touched
  bool vectors;

  static __device__ __forceinline__ int row0() { return int(threadIdx.x) / pieces; }
  static __device__ __forceinline__ int piece() { return int(threadIdx.x) % pieces; }
  explicit __device__ __forceinline__ PanelSource(const Corner& from)
      : next(from.numbers + row0() * from.stride + piece() * 8),
        lines(lines_at_once * from.stride),
        turn(by_depth ? panel_depth * from.stride : panel_depth),
        rows(int(from.rows) - row0()),
        columns(int(from.columns) - piece() * 8),
        vectors(from.vectors) {}
};

/// Up to eight elements that lie anywhere, and zeros behind them.
__device__ __forceinline__ uint4 piece_of(const std::uint16_t* at, int count) {
  std::uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t low = 2 * i < count ? at[2 * i] : 0, high = 2 * i + 1 < count ? at[2 * i + 1] : 0;
    pairs[i] = low | high << 16;
  }
  return {pairs[0], pairs[1], pairs[2], pairs[3]};
}

/// Zeros where the matrix has ended. On its way when this returns: commit_copies() and wait_copies() follow.
template <bool by_depth>
__device__ __forceinline__ void fetch(Panel<by_depth>& to, PanelSource<by_depth>& from) {
  using Source = PanelSource<by_depth>;
  const std::uint16_t* at = from.next;
  if (from.vectors) {
    const bool wide = from.columns > 0;
#pragma unroll
    for (int row = 0; row < Source::Filled::rows; row += Source::lines_at_once) {
      gpu::copy_async(to.piece(Source::row0() + row, Source::piece()), at, wide && row < from.rows);
      at += from.lines;
    }
  } else {
#pragma unroll 1
    for (int row = 0; row < Source::Filled::rows; row += Source::lines_at_once) {
      gpu::store(to.piece(Source::row0() + row, Source::piece()),
                 piece_of(at, row < from.rows ? from.columns : 0));
      at += from.lines;
    }
  }
  from.next += from.turn;
  (by_depth ? from.rows : from.columns) -= panel_depth;
}

/// The a-fragment of rows [row, row + 16) of the left operand, at depth [k, k + 16).
template <bool by_depth>
__device__ __forceinline__ void load_left(std::uint32_t (&out)[4], Panel<by_depth>& panel, int row, int k) {
  const int lane = int(threadIdx.x) % 32;
  if constexpr (by_depth)
    gpu::load_matrices<true>(out, panel.piece(k + lane % 8 + lane / 16 * 8, row / 8 + lane / 8 % 2));
  else
    gpu::load_matrices(out, panel.piece(row + lane % 16, k / 8 + lane / 16));
}

/// Two b-fragments, of columns [column, column + 16) of the right operand, at depth [k, k + 16).
template <bool by_depth>
__device__ __forceinline__ void load_right(std::uint32_t (&out)[4], Panel<by_depth>& panel, int column,
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
template <class Half, bool left_by_depth, bool right_by_depth>
__device__ __forceinline__ void add_sixteen(Quarter& sums, Panel<left_by_depth>& left,
                                            Panel<right_by_depth>& right, int k) {
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
template <class Half, bool left_by_depth, bool right_by_depth>
__device__ __forceinline__ void add_product(Quarter& sums, Panel<left_by_depth>& left,
                                            Panel<right_by_depth>& right, std::int64_t deep) {
  if (deep >= panel_depth) {
#pragma unroll
    for (int k = 0; k < panel_depth; k += 16) add_sixteen<Half>(sums, left, right, k);
  } else {
#pragma unroll 1
    for (int k = 0; k < int(deep); k += 16) add_sixteen<Half>(sums, left, right, k);
  }
}

/// A result on its way from fragments to rows. Pieces of 8 numbers lie as a panel's do.
struct alignas(128) Square {
  float numbers[panel_width * panel_width];
  __device__ __forceinline__ float* piece(int row, int piece) {
    return numbers + row * panel_width + (piece ^ row % 8) * 8;
  }
};
__device__ __forceinline__ void put_quarter(Square& to, const Quarter& sums) {
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

}  // namespace weft::cuda
