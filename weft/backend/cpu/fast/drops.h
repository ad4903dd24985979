// Which of sixteen elements a dropout keeps. For sources of loops/ only.
#pragma once

#include <arithmetic.h>

#include "weft/backend/cpu/fast/order.h"

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

/// A row's words, and the operands that come in from memory while they are drawn.
struct Kept {
  const DropRow& row;
  In first, second;
};
[[gnu::always_inline]] inline void ask(In in, std::int64_t from, std::int64_t n) {
  const std::int64_t size = in.type == Type::f32 ? 4 : 2;
  const char* at = static_cast<const char*>(in.from) + from * size;
  for (std::int64_t byte = 0; byte < n * size; byte += 64) __builtin_prefetch(at + byte);
}

/// The words of a stretch of a row, drawn together.
struct Stretch {
  static constexpr std::int64_t elements = 512;
  std::uint32_t words[elements + 4 * blocks_at_once + lanes];
  std::int64_t skip = 0;  // words before the first element's
};
[[gnu::always_inline]] inline void draw(const Kept& kept, std::int64_t at, std::int64_t n, Stretch& stretch) {
  const std::uint64_t element = kept.row.first + std::uint64_t(at);
  constexpr std::int64_t words = 4 * blocks_at_once;
  stretch.skip = std::int64_t(element % 4);
  for (std::int64_t i = 0; i < n + stretch.skip; i += words) {
    ask(kept.first, at + i, words);
    ask(kept.second, at + i, words);
    draw(kept.row, element / 4 + std::uint64_t(i / 4), stretch.words + i);
  }
}

[[gnu::always_inline]] inline Out after(Out out, std::int64_t elements) {
  const std::int64_t size = out.type == Type::f32 ? 4 : 2;
  return {static_cast<char*>(out.to) + elements * size, out.type, out.past};
}

/// Each row becomes value(at, keep), in the order of its type; keep(x) is x as dropout leaves it.
template <int count, class Value>
[[gnu::always_inline]] inline void map_kept(const Outs<count>& outs, const Kept& kept, std::int64_t n,
                                            const Value& value) {
  const Walk walk = walk_of(outs.of[0].type, kept.first.type, kept.second.type);
  if (kept.row.below == 0)
    return map(
        outs, walk, n, [&](auto at) __attribute__((always_inline)) {
          return value(
              at, [](F x) __attribute__((always_inline)) { return x; });
        });
  const F scale = all(kept.row.scale);
  const U below = all(kept.row.below);
  Stretch stretch;
  for (std::int64_t from = 0; from < n; from += Stretch::elements) {
    const std::int64_t size = n - from < Stretch::elements ? n - from : Stretch::elements;
    draw(kept, from, size, stretch);
    Outs<count> here = outs;
    for (Out& out : here.of) out = after(out, from);
    map(here, walk, size, [&](auto within) {
      const U words = load_words(stretch.words + stretch.skip, within);
      const auto keep = [&](F x) { return choose(words < below, all(0.0F), x * scale); };
      within.at += from;
      return value(within, keep);
    });
  }
}

}  // namespace weft::fast::WEFT_ISA
