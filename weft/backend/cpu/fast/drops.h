// Which of sixteen elements a dropout keeps. For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

inline constexpr int blocks_at_once = 8;

/// The words of blocks `first` to `first` + 7 of a draw, in order: philox4x32 of base/random.h on the lower
/// halves of 64 bits. What stands in the upper halves is never read.
[[gnu::always_inline]] inline void draw(const DropRow& row, std::uint64_t first, std::uint32_t* words) {
  constexpr int each = width / 2;
  for (int p = 0; p < parts; ++p) {
    Longs block;
    for (int i = 0; i < each; ++i) block[i] = first + std::uint64_t(p * each + i);
    Longs c0 = block;
    Longs c1 = block >> 32;
    Longs c2 = Longs{} + row.upper[0];
    Longs c3 = Longs{} + row.upper[1];
    std::uint32_t k0 = row.key[0];
    std::uint32_t k1 = row.key[1];
    for (int round = 0; round < 10; ++round) {
      const Longs even = multiply_halves(c0, Longs{} + 0xD2511F53U);
      const Longs odd = multiply_halves(c2, Longs{} + 0xCD9E8D57U);
      c0 = (odd >> 32) ^ c1 ^ (Longs{} + k0);
      c1 = odd;
      c2 = (even >> 32) ^ c3 ^ (Longs{} + k1);
      c3 = even;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    Longs low;
    Longs high;
    interleave((c0 & 0xffffffffU) | c1 << 32, (c2 & 0xffffffffU) | c3 << 32, low, high);
    write(words + p * 4 * each, low);
    write(words + p * 4 * each + 2 * each, high);
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
