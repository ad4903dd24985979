// Which of sixteen elements a dropout keeps. For sources of loops/ only.
#pragma once

#include <arithmetic.h>

#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

inline constexpr int blocks_at_once = 16;

/// The words of blocks `first` to `first` + 15 of a draw, in order: philox4x32 of base/random.h on the lower
/// halves of 64 bits. What stands in the upper halves is never read.
[[gnu::always_inline]] inline void draw(const DropRow& row, std::uint64_t first, std::uint32_t* words) {
  constexpr int each = width / 2;
  constexpr int groups = blocks_at_once / each;
  Longs c0[groups];
  Longs c1[groups];
  Longs c2[groups];
  Longs c3[groups];
  Longs count = {};
  for (int i = 0; i < each; ++i) count[i] = std::uint64_t(i);
  for (int g = 0; g < groups; ++g) {
    c0[g] = count + (first + std::uint64_t(g * each));
    c1[g] = c0[g] >> 32;
    c2[g] = Longs{} + row.upper[0];
    c3[g] = Longs{} + row.upper[1];
  }
  Longs k0 = Longs{} + row.key[0];
  Longs k1 = Longs{} + row.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int g = 0; g < groups; ++g) {
      const Longs even = multiply_halves(c0[g], Longs{} + 0xD2511F53U);
      const Longs odd = multiply_halves(c2[g], Longs{} + 0xCD9E8D57U);
      c0[g] = exclusive_or(upper_halves(odd), c1[g], k0);
      c1[g] = odd;
      c2[g] = exclusive_or(upper_halves(even), c3[g], k1);
      c3[g] = even;
    }
    // What these carry into the upper halves is never read either.
    k0 += Longs{} + 0x9E3779B9U;
    k1 += Longs{} + 0xBB67AE85U;
  }
  for (int g = 0; g < groups; ++g) {
    Longs low;
    Longs high;
    interleave(lower_pairs(c0[g], c1[g]), lower_pairs(c2[g], c3[g]), low, high);
    write(words + g * 4 * each, low);
    write(words + g * 4 * each + 2 * each, high);
  }
}

/// The words of a stretch of a row, drawn together.
struct Stretch {
  static constexpr std::int64_t elements = 512;
  std::uint32_t words[elements + 4 * blocks_at_once + lanes];
  std::int64_t skip = 0;  // words before the first element's
};
[[gnu::always_inline]] inline void draw(const DropRow& row, std::int64_t at, std::int64_t n,
                                        Stretch& stretch) {
  const std::uint64_t element = row.first + std::uint64_t(at);
  stretch.skip = std::int64_t(element % 4);
  for (std::int64_t i = 0; i < n + stretch.skip; i += 4 * blocks_at_once)
    draw(row, element / 4 + std::uint64_t(i / 4), stretch.words + i);
}

/// body(at, keep) for every sixteen of a row; keep(x) is x as dropout leaves it.
template <class Body>
[[gnu::always_inline]] inline void each_kept(const DropRow& row, std::int64_t n, const Body& body) {
  if (row.below == 0) {
    each(n, [&](auto at) { body(at, [](F x) { return x; }); });
    return;
  }
  const F scale = all(row.scale);
  const U below = all(row.below);
  Stretch stretch;
  for (std::int64_t from = 0; from < n; from += Stretch::elements) {
    const std::int64_t count = n - from < Stretch::elements ? n - from : Stretch::elements;
    draw(row, from, count, stretch);
    each(count, [&](auto within) {
      const U words = load(stretch.words + stretch.skip + within.at);
      const auto keep = [&](F x) __attribute__((always_inline)) {
        return choose(words < below, all(0.0F), x * scale);
      };
      within.at += from;
      body(within, keep);
    });
  }
}

}  // namespace weft::fast::WEFT_ISA
