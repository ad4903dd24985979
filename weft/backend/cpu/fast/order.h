// How a loop walks along a row, and where its results go. Where all operands and results are f32, or all are
// bf16, their type is settled before the loop; bf16 is then walked in an order of its own: of each thirty-two
// elements the even ones, then the odd ones, which is how they come out of a register and go into one in a
// single step. For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

inline constexpr std::int64_t pair = 2 * lanes;

/// Sixteen elements, every operand f32.
struct Plain {
  std::int64_t at;
};
/// Every second of thirty-two elements, from the first or from the second, every operand bf16.
struct Evens {
  std::int64_t at;
};
struct Odds {
  std::int64_t at;
};

[[gnu::always_inline]] inline F load(In in, Plain at) {
  return load(static_cast<const float*>(in.from) + at.at);
}
[[gnu::always_inline]] inline F load(In in, Evens at) {
  const bf16* from = static_cast<const bf16*>(in.from) + at.at;
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = (Floats)(read<Words>(from + 2 * i * width) << 16);
  return r;
}
[[gnu::always_inline]] inline F load(In in, Odds at) {
  const bf16* from = static_cast<const bf16*>(in.from) + at.at;
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = (Floats)(read<Words>(from + 2 * i * width) & 0xffff0000U);
  return r;
}

/// Of thirty-two words that lie element after element.
[[gnu::always_inline]] inline U load_words(const std::uint32_t* from, Evens at) {
  U r;
  for (int i = 0; i < parts; ++i)
    r.part[i] = (Words)evens(read<Floats>(from + at.at + 2 * i * width),
                             read<Floats>(from + at.at + (2 * i + 1) * width));
  return r;
}
[[gnu::always_inline]] inline U load_words(const std::uint32_t* from, Odds at) {
  U r;
  for (int i = 0; i < parts; ++i)
    r.part[i] = (Words)odds(read<Floats>(from + at.at + 2 * i * width),
                            read<Floats>(from + at.at + (2 * i + 1) * width));
  return r;
}
[[gnu::always_inline]] inline U load_words(const std::uint32_t* from, Plain at) { return load(from + at.at); }
[[gnu::always_inline]] inline U load_words(const std::uint32_t* from, Whole at) { return load(from + at.at); }
[[gnu::always_inline]] inline U load_words(const std::uint32_t* from, Tail at) { return load(from + at.at); }

/// Numbers that lie in the order of the loop: what arrange() made, and sums over rows on their way.
[[gnu::always_inline]] inline F along(const float* from, Plain at) { return load(from + at.at); }
[[gnu::always_inline]] inline F along(const float* from, Whole at) { return load(from, at); }
[[gnu::always_inline]] inline F along(const float* from, Tail at) { return load(from, at); }
[[gnu::always_inline]] inline F along(const float* from, Evens at) { return load(from + at.at); }
[[gnu::always_inline]] inline F along(const float* from, Odds at) { return load(from + at.at + lanes); }
[[gnu::always_inline]] inline void keep_along(float* to, Plain at, F x) { store(to + at.at, x); }
[[gnu::always_inline]] inline void keep_along(float* to, Whole at, F x) { store(to, at, x); }
[[gnu::always_inline]] inline void keep_along(float* to, Tail at, F x) { store(to, at, x); }
[[gnu::always_inline]] inline void keep_along(float* to, Evens at, F x) { store(to + at.at, x); }
[[gnu::always_inline]] inline void keep_along(float* to, Odds at, F x) { store(to + at.at + lanes, x); }

[[gnu::always_inline]] inline F only(Plain, F x, float) { return x; }
[[gnu::always_inline]] inline F only(Evens, F x, float) { return x; }
[[gnu::always_inline]] inline F only(Odds, F x, float) { return x; }

/// Thirty-two as bf16, and as f32.
[[gnu::always_inline]] inline void store_halves(Out out, std::int64_t at, F even, F odd) {
  bf16* to = static_cast<bf16*>(out.to) + at;
  for (int i = 0; i < parts; ++i) {
    const auto both = (Floats)join_upper(round_bf16(even.part[i]), round_bf16(odd.part[i]));
    if (out.past)
      stream(reinterpret_cast<float*>(to + 2 * i * width), both);
    else
      write(to + 2 * i * width, both);
  }
}
[[gnu::always_inline]] inline void store_two(Out out, std::int64_t at, F first, F second) {
  float* to = static_cast<float*>(out.to);
  put(to, out.past, Whole{at}, first);
  put(to, out.past, Whole{at + lanes}, second);
}

/// Rows of a type that are written together, and what is written to each.
template <int count>
struct Outs {
  Out of[count];
};
template <int count>
struct Values {
  F of[count];
};

/// Each row becomes value(at). Functions that call this are to be [[gnu::flatten]], or value stays a call.
template <int count, class Value>
[[gnu::always_inline]] inline void map(const Outs<count>& to, Walk walk, std::int64_t n, const Value& value) {
  const Outs<count> outs = to;
  std::int64_t i = 0;
  if (walk == Walk::bf16)
    for (; i + pair <= n; i += pair) {
      const Values<count> even = value(Evens{i});
      const Values<count> odd = value(Odds{i});
      for (int k = 0; k < count; ++k) store_halves(outs.of[k], i, even.of[k], odd.of[k]);
    }
  else if (walk == Walk::f32)
    for (; i + pair <= n; i += pair) {
      const Values<count> first = value(Plain{i});
      const Values<count> second = value(Plain{i + lanes});
      for (int k = 0; k < count; ++k) store_two(outs.of[k], i, first.of[k], second.of[k]);
    }
  const auto put = [&](auto at) {
    const Values<count> x = value(at);
    for (int k = 0; k < count; ++k) store(outs.of[k], at, x.of[k]);
  };
  for (; i + lanes <= n; i += lanes) put(Whole{i});
  if (i < n) put(Tail{i, n - i});
}
template <class Value>
[[gnu::always_inline]] inline void map(Out out, Walk walk, std::int64_t n, const Value& value) {
  map(Outs<1>{{out}}, walk, n, [&](auto at) { return Values<1>{{value(at)}}; });
}

/// body(at, number of the running sum 0..3).
template <class Body>
[[gnu::always_inline]] inline void each_of_four(Walk walk, std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  if (walk == Walk::bf16) {
    for (; i + 2 * pair <= n; i += 2 * pair) {
      body(Evens{i}, 0);
      body(Odds{i}, 1);
      body(Evens{i + pair}, 2);
      body(Odds{i + pair}, 3);
    }
    for (; i + pair <= n; i += pair) {
      body(Evens{i}, 0);
      body(Odds{i}, 1);
    }
  } else if (walk == Walk::f32) {
    for (; i + 2 * pair <= n; i += 2 * pair)
      for (int k = 0; k < 4; ++k) body(Plain{i + k * lanes}, k);
  } else {
    for (; i + 2 * pair <= n; i += 2 * pair)
      for (int k = 0; k < 4; ++k) body(Whole{i + k * lanes}, k);
  }
  for (; i + lanes <= n; i += lanes) body(Whole{i}, 0);
  if (i < n) body(Tail{i, n - i}, 0);
}

}  // namespace weft::fast::WEFT_ISA
