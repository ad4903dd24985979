// Products of pairs of bf16 on AMX: a tile is sixteen rows of 64 bytes, and one instruction adds the product
// of two of them, 32 deep, to a third. Every element of c is one chain over blocks of 32 in ascending depth,
// whatever the tile, so no bit depends on how a product is cut in rows or columns. Denormals count as zero.
// For sources of loops/ only.
#pragma once

#include <native.h>
#include <pairs.h>

#include <cstdint>

#include "weft/backend/cpu/fast/gemm_tile.h"

namespace weft::fast::WEFT_ISA {

/// A tile's rows and its f32 columns; one product is tile_depth deep.
inline constexpr std::int64_t tile_rows = 16;
/// Rows of a lie one below the other.
inline constexpr bool takes_columns = false;
static_assert(width == tile_rows);

/// Tiles can be used while one of these lives, by its thread. The state of tiles is large: the system need
/// not keep it in between.
class Tiles {
 public:
  Tiles() {
    Shapes shapes;
    // g++ 12 declares the first eight bytes only as read.
    asm volatile("" : : "r"(&shapes) : "memory");
    _tile_loadconfig(&shapes);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  /// Eight tiles, all as large as can be.
  struct alignas(64) Shapes {
    std::uint8_t palette = 1;
    std::uint8_t reserved[15] = {};
    std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
};

/// Rows of two tiles side by side that are loaded next, or lie beyond the last: a tile that waits for its
/// rows holds up all products.
[[gnu::always_inline]] inline void expect_rows(const void* at, std::int64_t step) {
  const char* row = static_cast<const char*>(at);
  for (std::int64_t i = 0; i < tile_rows; ++i, row += step) {
    __builtin_prefetch(row);
    __builtin_prefetch(row + 64);
  }
}

/// One or two tiles by one or two. Tiles 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b.
template <int rows, int columns, Start start>
[[gnu::always_inline]] inline void multiply_block(const Target& c, const PairRows& a, const PairPanel& b,
                                                  std::int64_t blocks) {
  const std::int64_t c_step = c.step * 4, a_step = a.step * 2, b_step = b.step * 4;
  float* const c_below = c.at + tile_rows * c.step;
  const char* a_at = static_cast<const char*>(a.at);
  const char* b_at = static_cast<const char*>(b.at);
  if constexpr (start == Start::zero) {
    _tile_zero(0);
    if constexpr (columns > 1) _tile_zero(1);
    if constexpr (rows > 1) _tile_zero(2);
    if constexpr (rows > 1 && columns > 1) _tile_zero(3);
  } else {
    _tile_loadd(0, c.at, c_step);
    if constexpr (columns > 1) _tile_loadd(1, c.at + tile_rows, c_step);
    if constexpr (rows > 1) _tile_loadd(2, c_below, c_step);
    if constexpr (rows > 1 && columns > 1) _tile_loadd(3, c_below + tile_rows, c_step);
  }
  for (std::int64_t k = 0; k < blocks; ++k, a_at += 2 * tile_depth, b_at += tile_rows * b_step) {
    _tile_loadd(4, a_at, a_step);
    _tile_loadd(6, b_at, b_step);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (columns > 1) {
      _tile_loadd(7, b_at + 64, b_step);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (rows > 1) {
      _tile_loadd(5, a_at + tile_rows * a_step, a_step);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (rows > 1 && columns > 1) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c.at, c_step);
  if constexpr (columns > 1) _tile_stored(1, c.at + tile_rows, c_step);
  if constexpr (rows > 1) _tile_stored(2, c_below, c_step);
  if constexpr (rows > 1 && columns > 1) _tile_stored(3, c_below + tile_rows, c_step);
}

/// One tile by two at a time, all rows, 64 deep: the columns of b stay in tiles 4 to 7, so that a product
/// takes half a load instead of one.
template <Start start>
[[gnu::always_inline]] inline void multiply_held(Target c, std::int64_t rows, const PairRows& a,
                                                 const PairPanel& b, Fetch* fetch) {
  const std::int64_t c_step = c.step * 4, a_step = a.step * 2, b_step = b.step * 4;
  const char* a_at = static_cast<const char*>(a.at);
  const char* b_at = static_cast<const char*>(b.at);
  const char* b_below = b_at + tile_rows * b_step;
  _tile_loadd(4, b_at, b_step);
  _tile_loadd(5, b_at + 64, b_step);
  _tile_loadd(6, b_below, b_step);
  _tile_loadd(7, b_below + 64, b_step);
  for (; rows > 0; rows -= tile_rows, a_at += tile_rows * a_step, c.at += tile_rows * c.step) {
    if (fetch != nullptr) fetch->some();
    if constexpr (start == Start::zero) {
      _tile_zero(0);
      _tile_zero(1);
    } else {
      _tile_loadd(0, c.at, c_step);
      _tile_loadd(1, c.at + tile_rows, c_step);
    }
    _tile_loadd(2, a_at, a_step);
    if constexpr (start == Start::more) {
      expect_rows(c.at + tile_rows * c.step, c_step);
      expect_rows(a_at + tile_rows * a_step, a_step);
    }
    _tile_dpbf16ps(0, 2, 4);
    _tile_dpbf16ps(1, 2, 5);
    _tile_loadd(3, a_at + 2 * tile_depth, a_step);
    _tile_dpbf16ps(0, 3, 6);
    _tile_dpbf16ps(1, 3, 7);
    _tile_stored(0, c.at, c_step);
    _tile_stored(1, c.at + tile_rows, c_step);
  }
}

/// The same, 128 deep.
template <Start start>
[[gnu::always_inline]] inline void multiply_held_twice(const Target& c, std::int64_t rows, const PairRows& a,
                                                       const PairPanel& b, Fetch* fetch) {
  multiply_held<start>(c, rows, a, b, fetch);
  const PairRows further = {static_cast<const char*>(a.at) + 4 * tile_depth, a.step};
  const PairPanel below = {static_cast<const char*>(b.at) + 2 * tile_rows * b.step * 4, b.step};
  multiply_held<Start::more>(c, rows, further, below, fetch);
}

/// All rows of one or two tiles' columns.
template <int columns, Start start>
[[gnu::always_inline]] inline void multiply_columns(Target c, const Extent& size, PairRows a,
                                                    const PairPanel& b, Fetch* fetch) {
  for (std::int64_t rows = size.rows; rows > 0; rows -= 2 * tile_rows) {
    if (fetch != nullptr) {
      fetch->some();
      fetch->some();
    }
    if (rows > tile_rows)
      multiply_block<2, columns, start>(c, a, b, size.blocks);
    else
      multiply_block<1, columns, start>(c, a, b, size.blocks);
    c.at += 2 * tile_rows * c.step;
    a.at = static_cast<const char*>(a.at) + 4 * tile_rows * a.step;
  }
}

/// c [rows, 16 columns] (+)= a [rows, 32 blocks] b. Rows are read and written as far as whole tiles go.
template <Start start>
[[gnu::noinline]] void multiply_pairs(Target c, Extent size, PairRows a, PairPanel b,
                                      Fetch* fetch = nullptr) {
  static_assert(start != Start::scaled);
  // The compilers do not know that tiles are read from memory.
  asm volatile("" : : : "memory");
  for (std::int64_t columns = size.columns; columns > 0; columns -= 2) {
    if (columns > 1 && size.blocks == 2)
      multiply_held<start>(c, size.rows, a, b, fetch);
    else if (columns > 1 && size.blocks == 4)
      multiply_held_twice<start>(c, size.rows, a, b, fetch);
    else if (columns > 1)
      multiply_columns<2, start>(c, size, a, b, fetch);
    else
      multiply_columns<1, start>(c, size, a, b, fetch);
    c.at += 2 * tile_rows;
    b.at = static_cast<const char*>(b.at) + 2 * 64;
  }
  asm volatile("" : : : "memory");
}

}  // namespace weft::fast::WEFT_ISA
