// Products of pairs of bf16 in vector registers: one instruction adds the products of both halves of sixteen
// words, as the product's own loops have it (cpu/product/native/pairs.cpp). Every element of c is one chain
// over pairs in ascending depth, whatever the tile, so no bit depends on how a product is cut in rows or
// columns. Denormals count as zero, and sums that would be denormal become zero. For sources of loops/ only.
#pragma once

#include <native.h>
#include <pairs.h>

#include <cstdint>

#include "weft/backend/cpu/fast/gemm_tile.h"

namespace weft::fast::WEFT_ISA {

/// Rows of a lie one below the other, or side by side.
inline constexpr bool takes_columns = true;

/// Registers need no getting ready, as tiles do.
struct Tiles {};

/// A word of a's row i.
[[gnu::always_inline]] inline std::int32_t word_at(const PairRows& a, std::int64_t i, std::int64_t k) {
  std::int32_t word;
  __builtin_memcpy(&word, static_cast<const char*>(a.at) + i * a.step * 2 + k * 4, sizeof word);
  return word;
}
[[gnu::always_inline]] inline std::int32_t word_at(const PairColumns& a, std::int64_t i, std::int64_t k) {
  std::int32_t word;
  __builtin_memcpy(&word, static_cast<const char*>(a.at) + (i + k * a.step) * 4, sizeof word);
  return word;
}
[[gnu::always_inline]] inline PairRows rows_from(const PairRows& a, std::int64_t i) {
  return {static_cast<const char*>(a.at) + i * a.step * 2, a.step};
}
[[gnu::always_inline]] inline PairColumns rows_from(const PairColumns& a, std::int64_t i) {
  return {static_cast<const char*>(a.at) + i * 4, a.step};
}

/// One tile of `rows` by `columns` registers, begun and ended as a tile of single numbers.
template <int rows, int columns, Start start, class A>
struct PairTile {
  Tile<rows, columns, start, A> sums;

  template <int i, int... J>
  [[gnu::always_inline]] void add_row(std::int32_t word, const Floats* b, Numbers<J...>) {
    const auto all = (__m512bh)(Ints{} + word);
    ((sums.sum[i * columns + J] =
          (Floats)_mm512_dpbf16_ps((__m512)sums.sum[i * columns + J], all, (__m512bh)b[J])),
     ...);
  }
  template <int... I, int... J>
  [[gnu::always_inline]] void step(const A& a, const float* b, std::int64_t k, Numbers<I...>, Numbers<J...>) {
    const Floats panel[columns] = {read(b + J * width)...};
    (add_row<I>(word_at(a, I, k), panel, Numbers<J...>{}), ...);
  }
  template <int... I>
  [[gnu::always_inline]] void run(const Target& c, const A& a, const PairPanel& b, std::int64_t words,
                                  Numbers<I...> all) {
    using Columns = typename UpTo<columns>::List;
    const auto* panel = static_cast<const float*>(b.at);
    (sums.template begin_row<I>(c, Columns{}), ...);
    for (std::int64_t k = 0; k < words; ++k) step(a, panel + k * b.step, k, all, Columns{});
    (sums.template end_row<I>(c, Columns{}), ...);
  }
};

/// Of 32 registers these keep 24 as sums, 4 as columns of b; and eight sums are as many as an addition takes
/// cycles, and two more.
inline constexpr int many_rows = 6, few_rows = 2;

/// Columns of one tile's width, all rows, rounded up to few_rows: rows beyond the last are added to, too, so
/// these must be rows of zeros.
template <int columns, Start start, class A>
[[gnu::noinline]] void column_of_pairs(Target c, Extent size, A a, PairPanel b, Fetch* fetch) {
  const std::int64_t words = size.blocks * tile_depth / 2;
  std::int64_t i = 0;
  for (; i + many_rows <= size.rows; i += many_rows) {
    if (fetch != nullptr) fetch->some();
    PairTile<many_rows, columns, start, A> tile;
    tile.run({c.at + i * c.step, c.step}, rows_from(a, i), b, words, typename UpTo<many_rows>::List{});
  }
  for (; i < size.rows; i += few_rows) {
    PairTile<few_rows, columns, start, A> tile;
    tile.run({c.at + i * c.step, c.step}, rows_from(a, i), b, words, typename UpTo<few_rows>::List{});
  }
}

/// c [rows, 16 columns] (+)= a [rows, 32 blocks] b. Rows are read and written as far as whole tiles go.
template <Start start, class A>
void multiply_pairs(Target c, Extent size, A a, PairPanel b, Fetch* fetch = nullptr) {
  static_assert(start != Start::scaled);
  std::int64_t left = size.columns;
  while (left > 0) {
    // Of five registers three and two: one alone would wait for its own sums.
    const std::int64_t now = left == 5 ? 3 : left < tile_columns ? left : tile_columns;
    if (now == 1) column_of_pairs<1, start>(c, size, a, b, fetch);
    if (now == 2) column_of_pairs<2, start>(c, size, a, b, fetch);
    if (now == 3) column_of_pairs<3, start>(c, size, a, b, fetch);
    if (now == 4) column_of_pairs<4, start>(c, size, a, b, fetch);
    c.at += now * width;
    b.at = static_cast<const float*>(b.at) + now * width;
    left -= now;
  }
}

}  // namespace weft::fast::WEFT_ISA
