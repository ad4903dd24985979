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
/// The halves of words as f32.
[[gnu::always_inline]] inline Floats widened(Evens, Words x) { return (Floats)(x << 16); }
[[gnu::always_inline]] inline Floats widened(Odds, Words x) { return (Floats)(x & 0xffff0000U); }
template <class Half>
[[gnu::always_inline]] inline F load_half(In in, Half at) {
  const bf16* from = static_cast<const bf16*>(in.from) + at.at;
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = widened(at, read<Words>(from + 2 * i * width));
  return r;
}
[[gnu::always_inline]] inline F load(In in, Evens at) { return load_half(in, at); }
[[gnu::always_inline]] inline F load(In in, Odds at) { return load_half(in, at); }

[[gnu::always_inline]] inline Floats every_second(Evens, Floats a, Floats b) { return evens(a, b); }
[[gnu::always_inline]] inline Floats every_second(Odds, Floats a, Floats b) { return odds(a, b); }
/// Of thirty-two words that lie element after element.
template <class At>
[[gnu::always_inline]] inline U load_words(const std::uint32_t* from, At at) {
  U r;
  for (int i = 0; i < parts; ++i)
    r.part[i] = (Words)every_second(at, read<Floats>(from + at.at + 2 * i * width),
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

/// A number that is next to a tie of bf16 by chance only, so that ties may go where they like: what comes of
/// a root, an exponential or a long sum.
struct Rough {
  F number;
};
/// Half a step of bf16 more in magnitude: cut off behind the upper half, that is x rounded to the nearest.
/// NaN stays NaN where its lower half is zero, as it is in all that comes of bf16 and of arrange().
template <int n>
[[gnu::always_inline]] inline Lanes<Words, n> half_a_step_up(Many<n> x) {
  return as_words(x) + all<n>(0x8000U);
}
/// As it is stored by itself on such a walk.
[[gnu::always_inline]] inline F alone(Walk, F x) { return x; }
[[gnu::always_inline]] inline F alone(Walk walk, Rough x) {
  return walk == Walk::bf16 ? as_floats(half_a_step_up(x.number) & all(0xffff0000U)) : x.number;
}

/// Thirty-two as bf16, and as f32.
struct Halves {
  Floats part[parts];
};
[[gnu::always_inline]] inline Halves halves(F even, F odd) {
  Halves r;
  for (int i = 0; i < parts; ++i)
    r.part[i] = (Floats)join_upper(round_bf16(even.part[i]), round_bf16(odd.part[i]));
  return r;
}
[[gnu::always_inline]] inline Halves halves(Rough even, Rough odd) {
  const U x = half_a_step_up(even.number), y = half_a_step_up(odd.number);
  Halves r;
  for (int i = 0; i < parts; ++i) r.part[i] = (Floats)join_upper(x.part[i], y.part[i]);
  return r;
}
[[gnu::always_inline]] inline void store_halves(Out out, std::int64_t at, const Halves& x) {
  bf16* to = static_cast<bf16*>(out.to) + at;
  for (int i = 0; i < parts; ++i) {
    if (out.past)
      stream(reinterpret_cast<float*>(to + 2 * i * width), x.part[i]);
    else
      write(to + 2 * i * width, x.part[i]);
  }
}
[[gnu::always_inline]] inline void store_two(Out out, std::int64_t at, F first, F second) {
  float* to = static_cast<float*>(out.to);
  put(to, out.past, Whole{at}, first);
  put(to, out.past, Whole{at + lanes}, second);
}
template <class Number>
[[gnu::always_inline]] inline void store_both(Out out, Evens even, Odds, Number x, Number y) {
  store_halves(out, even.at, halves(x, y));
}
[[gnu::always_inline]] inline void store_both(Out out, Plain first, Plain, F x, F y) {
  store_two(out, first.at, x, y);
}
[[gnu::always_inline]] inline void store_both(Out out, Plain first, Plain, Rough x, Rough y) {
  store_two(out, first.at, x.number, y.number);
}

/// An operand or a result from a later element on.
[[gnu::always_inline]] inline In after(In in, std::int64_t elements) {
  return {static_cast<const char*>(in.from) + elements * size_of(in.type), in.type};
}
[[gnu::always_inline]] inline Out after(Out out, std::int64_t elements) {
  return {static_cast<char*>(out.to) + elements * size_of(out.type), out.type, out.past};
}

/// Rows of a type that are written together, and what is written to each.
template <int count>
struct Outs {
  Out of[count];
};
template <int count, class Number = F>
struct Values {
  Number of[count];
};

/// Thirty-two elements of each row, which are stored together.
template <int count, class A, class B, class Value>
[[gnu::always_inline]] inline void map_two(const Outs<count>& outs, A a, B b, const Value& value) {
  const auto x = value(a);
  const auto y = value(b);
  for (int k = 0; k < count; ++k) store_both(outs.of[k], a, b, x.of[k], y.of[k]);
}

/// Each row becomes value(at). Functions that call this are to be [[gnu::flatten]], or value stays a call.
template <int count, class Value>
[[gnu::always_inline]] inline void map(const Outs<count>& to, Walk walk, std::int64_t n, const Value& value) {
  const Outs<count> outs = to;
  std::int64_t i = 0;
  if (walk == Walk::bf16)
    for (; i + pair <= n; i += pair) map_two(outs, Evens{i}, Odds{i}, value);
  else if (walk == Walk::f32)
    for (; i + pair <= n; i += pair) map_two(outs, Plain{i}, Plain{i + lanes}, value);
  const auto put = [&](auto at) {
    const auto x = value(at);
    for (int k = 0; k < count; ++k) store(outs.of[k], at, alone(walk, x.of[k]));
  };
  for (; i + lanes <= n; i += lanes) put(Whole{i});
  if (i < n) put(Tail{i, n - i});
}
template <class Value>
[[gnu::always_inline]] inline void map(Out out, Walk walk, std::int64_t n, const Value& value) {
  map(Outs<1>{{out}}, walk, n, [&](auto at) { return Values<1, decltype(value(at))>{{value(at)}}; });
}

/// two(at, at, number of the first one's running sum, 0 or 2) for thirty-two elements that are stored
/// together, one(at, number) where they are not: the order of each_of_four(), for loops that write as they
/// add.
template <class Two, class One>
[[gnu::always_inline]] inline void each_of_four(Walk walk, std::int64_t n, const Two& two, const One& one) {
  std::int64_t i = 0;
  if (walk == Walk::bf16) {
    for (; i + 2 * pair <= n; i += 2 * pair) {
      two(Evens{i}, Odds{i}, 0);
      two(Evens{i + pair}, Odds{i + pair}, 2);
    }
    for (; i + pair <= n; i += pair) two(Evens{i}, Odds{i}, 0);
  } else if (walk == Walk::f32) {
    for (; i + 2 * pair <= n; i += 2 * pair) {
      two(Plain{i}, Plain{i + lanes}, 0);
      two(Plain{i + pair}, Plain{i + pair + lanes}, 2);
    }
  } else {
    // Four calls: a running sum whose number the compiler does not know would live in memory.
    for (; i + 2 * pair <= n; i += 2 * pair) {
      one(Whole{i}, 0);
      one(Whole{i + lanes}, 1);
      one(Whole{i + pair}, 2);
      one(Whole{i + pair + lanes}, 3);
    }
  }
  for (; i + lanes <= n; i += lanes) one(Whole{i}, 0);
  if (i < n) one(Tail{i, n - i}, 0);
}
/// body(at, number of the running sum 0..3).
template <class Body>
[[gnu::always_inline]] inline void each_of_four(Walk walk, std::int64_t n, const Body& body) {
  const auto two = [&](auto a, auto b, int k) __attribute__((always_inline)) {
    body(a, k);
    body(b, k + 1);
  };
  each_of_four(walk, n, two, body);
}

}  // namespace weft::fast::WEFT_ISA
