// Sixteen numbers at once, whatever the registers' width: so every instruction set adds in the same order and
// gives the same bits. For sources of loops/ only.
#pragma once

#include <native.h>

#include <cstdint>

#include "weft/backend/cpu/fast/loops.h"
#include "weft/base/half.h"

namespace weft::fast::WEFT_ISA {

inline constexpr int lanes = 16;
inline constexpr int parts = lanes / width;

/// Numbers of one kind: sixteen, or several sixteens. Only operators and the functions below touch them.
template <class Native, int count = parts>
struct Lanes {
  Native part[count];
};
template <int n>
using Many = Lanes<Floats, n>;
using F = Many<parts>;
using I = Lanes<Ints>;  // also the answer of a comparison: -1 or 0
using U = Lanes<Words>;

// ---- made of one number, or of another kind's bits

template <int n = parts>
[[gnu::always_inline]] inline Many<n> all(float x) {
  Many<n> r;
  for (int i = 0; i < n; ++i) r.part[i] = Floats{} + x;
  return r;
}
template <int n = parts>
[[gnu::always_inline]] inline Lanes<Ints, n> all(std::int32_t x) {
  Lanes<Ints, n> r;
  for (int i = 0; i < n; ++i) r.part[i] = Ints{} + x;
  return r;
}
template <int n = parts>
[[gnu::always_inline]] inline Lanes<Words, n> all(std::uint32_t x) {
  Lanes<Words, n> r;
  for (int i = 0; i < n; ++i) r.part[i] = Words{} + x;
  return r;
}
template <class V, int n>
[[gnu::always_inline]] inline Many<n> as_floats(Lanes<V, n> x) {
  Many<n> r;
  for (int i = 0; i < n; ++i) r.part[i] = (Floats)x.part[i];
  return r;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<Words, n> as_words(Lanes<V, n> x) {
  Lanes<Words, n> r;
  for (int i = 0; i < n; ++i) r.part[i] = (Words)x.part[i];
  return r;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<Ints, n> as_ints(Lanes<V, n> x) {
  Lanes<Ints, n> r;
  for (int i = 0; i < n; ++i) r.part[i] = (Ints)x.part[i];
  return r;
}
[[gnu::always_inline]] inline F to_floats(I x) {
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = __builtin_convertvector(x.part[i], Floats);
  return r;
}

// ---- arithmetic

template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator+(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] + b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator-(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] - b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator-(Lanes<V, n> a) {
  for (int i = 0; i < n; ++i) a.part[i] = -a.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator*(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] * b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator/(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] / b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator&(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] & b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator|(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] | b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator^(Lanes<V, n> a, Lanes<V, n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] ^ b.part[i];
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator<<(Lanes<V, n> a, int by) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] << by;
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> operator>>(Lanes<V, n> a, int by) {
  for (int i = 0; i < n; ++i) a.part[i] = a.part[i] >> by;
  return a;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<Ints, n> operator<(Lanes<V, n> a, Lanes<V, n> b) {
  Lanes<Ints, n> r;
  for (int i = 0; i < n; ++i) r.part[i] = (Ints)(a.part[i] < b.part[i]);
  return r;
}
template <class V, int n>
[[gnu::always_inline]] inline Lanes<Ints, n> operator==(Lanes<V, n> a, Lanes<V, n> b) {
  Lanes<Ints, n> r;
  for (int i = 0; i < n; ++i) r.part[i] = (Ints)(a.part[i] == b.part[i]);
  return r;
}
/// yes where the answer is -1, no where it is 0.
template <class V, int n>
[[gnu::always_inline]] inline Lanes<V, n> choose(Lanes<Ints, n> answer, Lanes<V, n> yes, Lanes<V, n> no) {
  for (int i = 0; i < n; ++i) yes.part[i] = answer.part[i] ? yes.part[i] : no.part[i];
  return yes;
}
/// b where either is no number.
[[gnu::always_inline]] inline F smaller(F a, F b) { return choose(a < b, a, b); }
[[gnu::always_inline]] inline F greater(F a, F b) { return choose(b < a, a, b); }
[[gnu::always_inline]] inline F root(F x) {
  for (int i = 0; i < parts; ++i) x.part[i] = root(x.part[i]);
  return x;
}
/// Each pair of neighbours the other way round.
[[gnu::always_inline]] inline F swapped(F x) {
  for (int i = 0; i < parts; ++i) x.part[i] = swapped(x.part[i]);
  return x;
}
template <int n>
[[gnu::always_inline]] inline Many<n> absolute(Many<n> x) {
  return as_floats(as_words(x) & all<n>(0x7fffffffU));
}
/// Magnitude of the first, sign of the second.
template <int n>
[[gnu::always_inline]] inline Many<n> with_sign(Many<n> x, Many<n> sign) {
  return as_floats(as_words(x) | (as_words(sign) & all<n>(0x80000000U)));
}
template <int n>
[[gnu::always_inline]] inline Many<n> square(Many<n> x) {
  return x * x;
}

// ---- all lanes to one, halves added to halves

struct Plus {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a + b;
  }
};
/// a unless b is greater.
struct Greater {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return b > a ? b : a;
  }
};
template <class Join>
[[gnu::always_inline]] inline float joined(F x, const Join& join) {
  const Fours four = to_four(x.part, join);
  const Fours two = join(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return join(two[0], two[1]);
}
[[gnu::always_inline]] inline float sum(F x) { return joined(x, Plus{}); }
[[gnu::always_inline]] inline float greatest(F x) { return joined(x, Greater{}); }
/// sum() of each, at once.
[[gnu::always_inline]] inline Fours sums_of(F a, F b, F c, F d) {
  const Fours four[] = {to_four(a.part, Plus{}), to_four(b.part, Plus{}), to_four(c.part, Plus{}),
                        to_four(d.part, Plus{})};
  const auto halves = [](Fours x, Fours y) {
    return __builtin_shufflevector(x, y, 0, 1, 4, 5) + __builtin_shufflevector(x, y, 2, 3, 6, 7);
  };
  const Fours ab = halves(four[0], four[1]);
  const Fours cd = halves(four[2], four[3]);
  return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}
[[gnu::always_inline]] inline bool any(I answer) {
  Ints r = answer.part[0];
  for (int i = 1; i < parts; ++i) r |= answer.part[i];
  std::int32_t found = 0;
  for (int i = 0; i < width; ++i) found |= r[i];
  return found != 0;
}

// ---- memory

/// Where sixteen elements start; a Tail has fewer than sixteen.
struct Whole {
  std::int64_t at;
};
struct Tail {
  std::int64_t at;
  std::int64_t count;
};

/// One register, from any address.
template <class Native>
[[gnu::always_inline]] inline Native read(const void* from) {
  Native r;
  __builtin_memcpy(&r, from, sizeof r);
  return r;
}
template <class Native>
[[gnu::always_inline]] inline void write(void* to, Native x) {
  __builtin_memcpy(to, &x, sizeof x);
}

[[gnu::always_inline]] inline F load(const float* from) {
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = read<Floats>(from + i * width);
  return r;
}
[[gnu::always_inline]] inline U load(const std::uint32_t* from) {
  U r;
  for (int i = 0; i < parts; ++i) r.part[i] = read<Words>(from + i * width);
  return r;
}
[[gnu::always_inline]] inline F load(const bf16* from) {
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = (Floats)(widen(read<Codes>(from + i * width)) << 16);
  return r;
}
[[gnu::always_inline]] inline F load(const f16* from) {
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = widen_f16(read<Codes>(from + i * width));
  return r;
}

/// To the nearest, ties to even, as base/half.h rounds.
[[gnu::always_inline]] inline Codes shorten_bf16(Floats x) { return truncate(round_bf16(x) >> 16); }
[[gnu::always_inline]] inline void store(float* to, F x) {
  for (int i = 0; i < parts; ++i) write(to + i * width, x.part[i]);
}
[[gnu::always_inline]] inline void store(std::uint32_t* to, U x) {
  for (int i = 0; i < parts; ++i) write(to + i * width, x.part[i]);
}
[[gnu::always_inline]] inline void store(bf16* to, F x) {
  for (int i = 0; i < parts; ++i) write(to + i * width, shorten_bf16(x.part[i]));
}
[[gnu::always_inline]] inline void store(f16* to, F x) {
  for (int i = 0; i < parts; ++i) write(to + i * width, shorten_f16(x.part[i]));
}
[[gnu::always_inline]] inline void stream(float* to, F x) {
  for (int i = 0; i < parts; ++i) stream(to + i * width, x.part[i]);
}
[[gnu::always_inline]] inline void stream(bf16* to, F x) {
  for (int i = 0; i < parts; ++i)
    stream(reinterpret_cast<std::uint16_t*>(to) + i * width, shorten_bf16(x.part[i]));
}
[[gnu::always_inline]] inline void stream(f16* to, F x) {
  for (int i = 0; i < parts; ++i)
    stream(reinterpret_cast<std::uint16_t*>(to) + i * width, shorten_f16(x.part[i]));
}

template <class T>
[[gnu::always_inline]] inline auto load(const T* from, Whole w) {
  return load(from + w.at);
}
/// Lanes beyond the tail are zero.
template <class T>
[[gnu::noinline]] auto load(const T* from, Tail tail) {
  T few[lanes] = {};
  for (std::int64_t i = 0; i < tail.count; ++i) few[i] = from[tail.at + i];
  return load(few);
}
template <class T>
[[gnu::always_inline]] inline void store(T* to, Whole w, F x) {
  store(to + w.at, x);
}
template <class T>
[[gnu::noinline]] void store(T* to, Tail tail, F x) {
  T few[lanes];
  store(few, x);
  for (std::int64_t i = 0; i < tail.count; ++i) to[tail.at + i] = few[i];
}

/// The type is asked at every sixteen elements: the answer is always the same, so it costs next to nothing,
/// and one loop serves every mixture of types.
template <class At>
[[gnu::always_inline]] inline F load(In in, At at) {
  if (in.type == Type::f32) return load(static_cast<const float*>(in.from), at);
  if (in.type == Type::bf16) return load(static_cast<const bf16*>(in.from), at);
  return load(static_cast<const f16*>(in.from), at);
}
template <class At>
[[gnu::always_inline]] inline F load(Out out, At at) {
  return load(In{out.to, out.type}, at);
}
template <class T>
[[gnu::always_inline]] inline void put(T* to, bool past, Whole w, F x) {
  if (past)
    stream(to + w.at, x);
  else
    store(to + w.at, x);
}
template <class T>
[[gnu::always_inline]] inline void put(T* to, bool, Tail tail, F x) {
  store(to, tail, x);
}
template <class At>
[[gnu::always_inline]] inline void store(Out out, At at, F x) {
  if (out.type == Type::f32)
    put(static_cast<float*>(out.to), out.past, at, x);
  else if (out.type == Type::bf16)
    put(static_cast<bf16*>(out.to), out.past, at, x);
  else
    put(static_cast<f16*>(out.to), out.past, at, x);
}

/// x in the lanes that are there, `beyond` in those that are not.
[[gnu::always_inline]] inline F only(Whole, F x, float) { return x; }
[[gnu::noinline]] inline F only(Tail tail, F x, float beyond) {
  float few[lanes];
  store(few, x);
  for (std::int64_t i = tail.count; i < lanes; ++i) few[i] = beyond;
  return load(few);
}

/// body(Whole) for every sixteen of n, body(Tail) for the rest.
template <class Body>
[[gnu::always_inline]] inline void each(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(Whole{i});
  if (i < n) body(Tail{i, n - i});
}

/// Four running sums over i = 0, 1, 2, 3 (mod 4) sixteens: the order of every sum of a row.
struct Sums {
  F of[4] = {all(0.0F), all(0.0F), all(0.0F), all(0.0F)};
  [[gnu::always_inline]] F joined() const { return (of[0] + of[1]) + (of[2] + of[3]); }
  [[gnu::always_inline]] float total() const { return sum(joined()); }
};
/// body(at, number of the running sum 0..3)
template <class Body>
[[gnu::always_inline]] inline void each_of_four(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    body(Whole{i}, 0);
    body(Whole{i + lanes}, 1);
    body(Whole{i + 2 * lanes}, 2);
    body(Whole{i + 3 * lanes}, 3);
  }
  for (; i + lanes <= n; i += lanes) body(Whole{i}, 0);
  if (i < n) body(Tail{i, n - i}, 0);
}

}  // namespace weft::fast::WEFT_ISA
