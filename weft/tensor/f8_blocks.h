// Where the scales of blocks lie beside a matrix of eight bits: as cuBLASLt reads them, and so on every
// device.
#pragma once

#include "weft/tensor/args.h"

namespace weft {

constexpr std::int64_t f8_blocks_in(std::int64_t size, std::int64_t block) {
  return (size + block - 1) / block;
}

/// Of codes [rows, columns] by blocks. A scale is kept as one over it: f32, or for lines of 32 the exponent
/// of a power of two in 8 bits.
struct F8Grid {
  static constexpr std::int64_t wide = 128, narrow = 32;
  /// Lines of 32 have theirs in tiles of 128 rows by 4 lines.
  static constexpr std::int64_t tile = 512;
  F8Blocks blocks;
  std::int64_t rows, columns;

  constexpr std::int64_t across() const { return f8_blocks_in(columns, wide); }
  /// Rows of squares begin at multiples of 16 bytes.
  constexpr std::int64_t row_of_squares() const { return f8_blocks_in(across(), 4) * 4; }
  constexpr std::int64_t place(std::int64_t row, std::int64_t column) const {
    if (blocks == F8Blocks::lines_of_128) return column / wide * rows + row;
    if (blocks == F8Blocks::squares_of_128) return row / wide * row_of_squares() + column / wide;
    if (blocks == F8Blocks::whole) return 0;
    return (row / wide * across() + column / wide) * tile + row % narrow * 16 + row % wide / narrow * 4 +
           column % wide / narrow;
  }
  constexpr std::int64_t places() const {
    if (blocks == F8Blocks::lines_of_128) return across() * rows;
    if (blocks == F8Blocks::squares_of_128) return f8_blocks_in(rows, wide) * row_of_squares();
    return blocks == F8Blocks::whole ? 1 : f8_blocks_in(rows, wide) * across() * tile;
  }
  constexpr Dtype dtype() const { return blocks == F8Blocks::lines_of_32 ? Dtype::u8 : Dtype::f32; }
  /// Of a row that share a scale.
  constexpr std::int64_t line() const { return blocks == F8Blocks::lines_of_32 ? narrow : wide; }
};

/// What sizes of codes are rounded up to.
constexpr std::int64_t f8_unit_of(F8Blocks blocks) {
  return blocks == F8Blocks::lines_of_32 ? F8Grid::narrow : f8_unit;
}

}  // namespace weft
