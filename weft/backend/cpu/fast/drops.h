// Which of sixteen elements a dropout keeps. For sources of loops/ only.
#pragma once

#include <arithmetic.h>

#include "weft/backend/cpu/fast/coming.h"

namespace weft::fast::WEFT_ISA {

// As many at once as keep the multipliers busy and the words in registers.
inline constexpr int pairs_at_once = width == 16 ? 4 : 2;
inline constexpr int blocks_at_once = 8 * pairs_at_once;

inline constexpr std::uint64_t even_factor = 0xD2511F53U;
inline constexpr std::uint64_t odd_factor = 0xCD9E8D57U;

/// The keys of a row's ten rounds, and what its first two are where the counter's upper half stays: all of
/// the blocks share three of the four words there.
struct Rounds {
  [[gnu::always_inline]] explicit Rounds(const DropRow& row) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      k0[i] = row.key[0] + i * 0x9E3779B9U;
      k1[i] = row.key[1] + i * 0xBB67AE85U;
    }
    constexpr std::uint64_t lower = 0xffffffffU;
    const std::uint64_t odd = row.upper[0] * odd_factor;
    const std::uint64_t even = ((odd >> 32 ^ k0[0] ^ row.first >> 34) & lower) * even_factor;
    first2 = row.upper[1] ^ k1[0];
    second0 = (odd & lower) ^ k0[1];
    second2 = even >> 32 ^ k1[1];
    third2 = (even & lower) ^ k1[2];
  }
  std::uint64_t k0[10], k1[10], first2, second0, second2, third2;
};

/// Blocks of four words in the lower halves of 64 bits: word j of block i is c[j][i / each] at i % each. What
/// stands in the upper halves is never read.
struct Blocks {
  static constexpr int each = width / 2;
  static constexpr int groups = blocks_at_once / each;
  Longs c[4][groups];
};
/// Rounds from..9 of philox4x32 of base/random.h.
[[gnu::always_inline]] inline void turn(Blocks& b, const Rounds& rounds, int from) {
#pragma GCC unroll 10
  for (int round = from; round < 10; ++round) {
    for (int g = 0; g < Blocks::groups; ++g) {
      const Longs even = multiply_halves(b.c[0][g], Longs{} + even_factor);
      const Longs odd = multiply_halves(b.c[2][g], Longs{} + odd_factor);
      b.c[0][g] = exclusive_or(upper_halves(odd), b.c[1][g], Longs{} + rounds.k0[round]);
      b.c[1][g] = odd;
      b.c[2][g] = exclusive_or(upper_halves(even), b.c[3][g], Longs{} + rounds.k1[round]);
      b.c[3][g] = even;
    }
  }
}
[[gnu::always_inline]] inline Longs counter(std::uint64_t first, int group) {
  Longs count = {};
  for (int i = 0; i < Blocks::each; ++i) count[i] = std::uint64_t(i);
  return count + (first + std::uint64_t(group * Blocks::each));
}
/// Blocks `first` and those after it of a draw.
[[gnu::always_inline]] inline Blocks draw(const DropRow& row, const Rounds& rounds, std::uint64_t first) {
  Blocks b;
  for (int g = 0; g < Blocks::groups; ++g) {
    b.c[0][g] = counter(first, g);
    b.c[1][g] = b.c[0][g] >> 32;
    b.c[2][g] = Longs{} + row.upper[0];
    b.c[3][g] = Longs{} + row.upper[1];
  }
  turn(b, rounds, 0);
  return b;
}
/// The same where the upper halves of the blocks' numbers are that of the row's first.
[[gnu::always_inline]] inline Blocks draw_near(const Rounds& rounds, std::uint64_t first) {
  Blocks b;
  for (int g = 0; g < Blocks::groups; ++g) {
    const Longs even = multiply_halves(counter(first, g), Longs{} + even_factor);
    const Longs odd = multiply_halves(upper_halves(even) ^ (Longs{} + rounds.first2), Longs{} + odd_factor);
    const Longs third_even =
        multiply_halves(upper_halves(odd) ^ (Longs{} + rounds.second0), Longs{} + even_factor);
    const Longs third_odd = multiply_halves(even ^ (Longs{} + rounds.second2), Longs{} + odd_factor);
    b.c[0][g] = exclusive_or(upper_halves(third_odd), odd, Longs{} + rounds.k0[2]);
    b.c[1][g] = third_odd;
    b.c[2][g] = upper_halves(third_even) ^ (Longs{} + rounds.third2);
    b.c[3][g] = third_even;
  }
  turn(b, rounds, 3);
  return b;
}
/// The words of group g, element after element.
[[gnu::always_inline]] inline void in_order(const Blocks& b, int g, Longs& low, Longs& high) {
  interleave(lower_pairs(b.c[0][g], b.c[1][g]), lower_pairs(b.c[2][g], b.c[3][g]), low, high);
}
[[gnu::always_inline]] inline void write(std::uint32_t* words, const Blocks& b) {
  for (int g = 0; g < Blocks::groups; ++g) {
    Longs low;
    Longs high;
    in_order(b, g, low, high);
    write(words + g * 4 * Blocks::each, low);
    write(words + g * 4 * Blocks::each + 2 * Blocks::each, high);
  }
}

/// The words of thirty-two elements, `at` from the first of the blocks.
[[gnu::always_inline]] inline U words_of(const Blocks& b, Evens at) {
  U words;
  for (int i = 0; i < parts; ++i) {
    const std::int64_t g = at.at / pair * parts + i;
    words.part[i] = (Words)lower_pairs(b.c[0][g], b.c[2][g]);
  }
  return words;
}
[[gnu::always_inline]] inline U words_of(const Blocks& b, Odds at) {
  U words;
  for (int i = 0; i < parts; ++i) {
    const std::int64_t g = at.at / pair * parts + i;
    words.part[i] = (Words)lower_pairs(b.c[1][g], b.c[3][g]);
  }
  return words;
}
[[gnu::always_inline]] inline U words_of(const Blocks& b, Plain at) {
  U words;
  for (int i = 0; i < parts; ++i) {
    const int from = int(at.at) / width + i;  // of the registers in order, two a group
    Longs halves[2];
    in_order(b, from / 2, halves[0], halves[1]);
    words.part[i] = (Words)halves[from % 2];
  }
  return words;
}

/// A row's words, and the operands that come in from memory meanwhile; the second may be from null.
struct Kept {
  const DropRow& row;
  In first, second;
};
[[gnu::always_inline]] inline void ask(In in, std::int64_t from, std::int64_t n) {
  const std::int64_t size = size_of(in.type);
  if (in.from) ask_ahead(static_cast<const char*>(in.from) + from * size, n * size);
}

/// The words of a stretch of a row, drawn together.
struct Stretch {
  static constexpr std::int64_t elements = 512;
  std::uint32_t words[elements + 4 * blocks_at_once + lanes];
  std::int64_t skip = 0;  // words before the first element's
};
[[gnu::always_inline]] inline void draw(const DropRow& row, const Rounds& rounds, std::int64_t at,
                                        std::int64_t n, Stretch& stretch) {
  const std::uint64_t element = row.first + std::uint64_t(at);
  constexpr std::int64_t words = 4 * blocks_at_once;
  stretch.skip = std::int64_t(element % 4);
  for (std::int64_t i = 0; i < n + stretch.skip; i += words)
    write(stretch.words + i, draw(row, rounds, element / 4 + std::uint64_t(i / 4)));
}

/// What dropout leaves of x, whose words these are.
struct DropMask {
  [[gnu::always_inline]] F operator()(F x) const { return choose(words < below, all(0.0F), x * scale); }
  U words, below;
  F scale;
};

/// two(at, at, number of the first one's running sum, 0 or 2, keep) for each thirty-two elements of a row's
/// start, as far as whole draws go, with the words in registers all the way: keep(at) gives their DropMask.
/// The start's length.
template <class Two>
[[gnu::always_inline]] inline std::int64_t each_drawn(const Kept& kept, Walk walk, std::int64_t n,
                                                      const Two& two) {
  constexpr std::int64_t elements = 4 * blocks_at_once;
  static_assert(elements % (2 * pair) == 0);
  const DropRow& row = kept.row;
  if (walk == Walk::mixed || row.first % 4 != 0) return 0;
  if (row.first >> 34 != (row.first + std::uint64_t(n)) >> 34) return 0;
  const Rounds rounds(row);
  const U below = all(row.below);
  const F scale = all(row.scale);
  std::int64_t i = 0;
  for (; i + elements <= n; i += elements) {
    ask(kept.first, i, elements);
    ask(kept.second, i, elements);
    const Blocks blocks = draw_near(rounds, (row.first + std::uint64_t(i)) / 4);
    const auto keep = [&](auto at) __attribute__((always_inline)) {
      at.at -= i;
      return DropMask{words_of(blocks, at), below, scale};
    };
    if (walk == Walk::bf16) {
      for (std::int64_t j = i; j < i + elements; j += 2 * pair) {
        two(Evens{j}, Odds{j}, 0, keep);
        two(Evens{j + pair}, Odds{j + pair}, 2, keep);
      }
    } else {
      for (std::int64_t j = i; j < i + elements; j += 2 * pair) {
        two(Plain{j}, Plain{j + lanes}, 0, keep);
        two(Plain{j + pair}, Plain{j + pair + lanes}, 2, keep);
      }
    }
  }
  return i;
}

/// Each row becomes value(at, keep), in the order of its type; keep(x) is x as dropout leaves it.
template <int count, class Value>
[[gnu::always_inline]] inline void map_kept(const Outs<count>& outs, const Kept& kept, std::int64_t n,
                                            const Value& value) {
  const DropRow& row = kept.row;
  const In first = kept.first;
  const In second = kept.second;
  const Walk walk = walk_of(outs.of[0].type, first.type, second.type);
  if (row.below == 0)
    return map(
        outs, walk, n, [&](auto at) __attribute__((always_inline)) {
          ask_ahead(first, at);
          if (second.from) ask_ahead(second, at);
          return value(
              at, [](F x) __attribute__((always_inline)) { return x; });
        });
  const F scale = all(row.scale);
  const U below = all(row.below);
  const Rounds rounds(row);
  Stretch stretch;
  const std::int64_t drawn = each_drawn(
      kept, walk, n,
      [&, to = outs ](auto a, auto b, int, const auto& keep_of) __attribute__((always_inline)) {
        map_two(
            to, a, b, [&](auto at) __attribute__((always_inline)) { return value(at, keep_of(at)); });
      });
  for (std::int64_t from = drawn; from < n; from += Stretch::elements) {
    const std::int64_t size = n - from < Stretch::elements ? n - from : Stretch::elements;
    draw(row, rounds, from, size, stretch);
    Outs<count> here = outs;
    for (Out& out : here.of) out = after(out, from);
    map(here, walk, size, [&](auto within) {
      const DropMask keep{load_words(stretch.words + stretch.skip, within), below, scale};
      within.at += from;
      return value(within, keep);
    });
  }
}

}  // namespace weft::fast::WEFT_ISA
