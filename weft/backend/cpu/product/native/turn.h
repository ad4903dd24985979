// Squares of registers whose rows become columns. For sources of this folder only.
#pragma once

#include <utility>

#include <native.h>

namespace weft::product::WEFT_ISA {

using fast::WEFT_ISA::Floats;
using fast::WEFT_ISA::width;

struct Woven {
  Floats low, high;
};

/// Within each four lanes: the first two of a and b in turns, and the last two.
template <int... i>
[[gnu::always_inline]] inline Woven weave(Floats a, Floats b, std::integer_sequence<int, i...>) {
  return {__builtin_shufflevector(a, b, (i / 4 * 4 + i % 4 / 2 + i % 2 * width)...),
          __builtin_shufflevector(a, b, (i / 4 * 4 + 2 + i % 4 / 2 + i % 2 * width)...)};
}

/// Fours of lanes: every second one of a and then of b, from the first on and from the second on.
template <int... i>
[[gnu::always_inline]] inline Woven part_fours(Floats a, Floats b, std::integer_sequence<int, i...>) {
  return {__builtin_shufflevector(a, b, (i / 4 * 8 + i % 4)...),
          __builtin_shufflevector(a, b, (i / 4 * 8 + 4 + i % 4)...)};
}

/// Fours of lanes change places with registers; of what comes of `from` the i-th is to[4 * i].
template <int fours>
[[gnu::always_inline]] inline void turn_fours(Floats* to, const Floats (&from)[fours]) {
  constexpr auto all = std::make_integer_sequence<int, width>{};
  if constexpr (fours == 1) {
    to[0] = from[0];
  } else if constexpr (fours == 2) {
    const Woven both = part_fours(from[0], from[1], all);
    to[0] = both.low;
    to[4] = both.high;
  } else {
    static_assert(fours == 4);
    const Woven first = part_fours(from[0], from[1], all), last = part_fours(from[2], from[3], all);
    const Woven even = part_fours(first.low, last.low, all), odd = part_fours(first.high, last.high, all);
    to[0] = even.low;
    to[4] = odd.low;
    to[8] = even.high;
    to[12] = odd.high;
  }
}

/// Rows of a square become its columns: first within fours of rows and lanes, which is cheapest, then the
/// fours among each other.
[[gnu::always_inline]] inline void turn(Floats (&square)[width]) {
  constexpr auto all = std::make_integer_sequence<int, width>{};
  Floats fours[4][width / 4];  // [k % 4][row / 4], its lanes [k / 4][row % 4]
  for (int g = 0; g < width / 4; ++g) {
    const Floats* of = square + 4 * g;
    const Woven even = weave(of[0], of[2], all), odd = weave(of[1], of[3], all);
    const Woven first = weave(even.low, odd.low, all), last = weave(even.high, odd.high, all);
    fours[0][g] = first.low;
    fours[1][g] = first.high;
    fours[2][g] = last.low;
    fours[3][g] = last.high;
  }
  for (int k = 0; k < 4; ++k) turn_fours(square + k, fours[k]);
}

}  // namespace weft::product::WEFT_ISA
