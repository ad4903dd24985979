// Panels of small floats in shared memory, 64 deep: what products in groups, and those of a fixed order, are
// made of (panel_products.h). A panel lies as its matrix does: with columns along what is summed, or with
// rows, which is by depth.
#pragma once

#include <gpu.h>

namespace weft::cuda {

inline constexpr int panel_depth = 64;

/// Columns lie by 64, as tiles of attention do: the 16-byte pieces of such a row r at piece ^ (r % 8), so
/// that 8 rows of one column of pieces are in 8 different groups of banks.
template <bool by_depth, int width>
struct alignas(1024) Panel {
  static constexpr int rows = by_depth ? panel_depth : width;
  static constexpr int columns = by_depth ? width : panel_depth;
  std::uint16_t numbers[rows * columns];
  __device__ __forceinline__ std::uint16_t* piece(int row, int piece) {
    return numbers + (piece / 8 * rows + row) * 64 + (piece % 8 ^ row % 8) * 8;
  }
};

/// A matrix from where a first panel begins: what is left of it.
struct Corner {
  const std::uint16_t* numbers;
  std::int64_t stride, rows, columns;
  bool vectors;  // eight elements of a row lie side by side at 16 bytes, and no row ends between them
};

/// What one of a block's threads fetches of panels that follow one another along what is summed: each call of
/// fetch() takes the next, and counts instead of asking where it lies.
template <bool by_depth, int width, int threads>
struct PanelSource {
  using Filled = Panel<by_depth, width>;
  static constexpr int pieces = Filled::columns / 8, lines_at_once = threads / pieces;
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
template <bool by_depth, int width, int threads>
__device__ __forceinline__ void fetch(Panel<by_depth, width>& to,
                                      PanelSource<by_depth, width, threads>& from) {
  using Source = PanelSource<by_depth, width, threads>;
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

}  // namespace weft::cuda
