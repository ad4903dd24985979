// Operands of products of pairs of bf16, and how two f32 become a pair: what the sets that have such products
// share. For sources of loops/ only.
#pragma once

#include <native.h>

#include <cstdint>

namespace weft::fast::WEFT_ISA {

/// Rows are filled up to a multiple of so many bf16.
inline constexpr std::int64_t tile_depth = 32;

/// bf16 rows of depth, `step` elements apart.
struct PairRows {
  const void* at;
  std::int64_t step;
};
/// Words of two bf16 each, one below the other in depth; rows of words `step` words apart.
struct PairPanel {
  const void* at;
  std::int64_t step;
};

/// The same words for rows side by side: word i of a row of words is row i's.
struct PairColumns {
  const void* at;
  std::int64_t step;  // words
};

/// Of c, in registers of columns; and of the depth, in multiples of tile_depth.
struct Extent {
  std::int64_t rows, columns, blocks;
};

/// The words' lower halves are `even`, their upper ones `odd`, both rounded to bf16, to the nearest, ties to
/// even.
[[gnu::always_inline]] inline Words pairs_of(Floats even, Floats odd) {
  const auto halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even);
  using Halves [[gnu::vector_size(64)]] = std::int16_t;
  constexpr Halves in_turn = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                              8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return (Words)_mm512_permutexvar_epi16((__m512i)in_turn, halves);
}
/// Thirty-two bf16 one after the other.
[[gnu::always_inline]] inline Words row_of_bf16(Floats low, Floats high) {
  return (Words)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

}  // namespace weft::fast::WEFT_ISA
