// The widest registers of an instruction set: any 64-bit processor's.
#pragma once

#include <cstdint>

namespace weft::fast::WEFT_ISA {

inline constexpr int width = 4;
using Floats [[gnu::vector_size(16)]] = float;
using Ints [[gnu::vector_size(16)]] = std::int32_t;
using Words [[gnu::vector_size(16)]] = std::uint32_t;
using Longs [[gnu::vector_size(16)]] = std::uint64_t;
using Doubles [[gnu::vector_size(16)]] = double;
using Codes [[gnu::vector_size(8)]] = std::uint16_t;
using Fours [[gnu::vector_size(16)]] = float;

[[gnu::always_inline]] inline Floats root(Floats x) {
  for (int i = 0; i < width; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

[[gnu::always_inline]] inline Doubles lower_half(Floats x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1), Doubles);
}
[[gnu::always_inline]] inline Doubles upper_half(Floats x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, 2, 3), Doubles);
}
/// Sixteen numbers to four: halves joined with halves, then halves of these.
template <class Join>
[[gnu::always_inline]] inline Fours to_four(const Floats (&x)[4], const Join& join) {
  return join(join(x[0], x[2]), join(x[1], x[3]));
}
/// Each pair of neighbours the other way round.
[[gnu::always_inline]] inline Floats swapped(Floats x) { return __builtin_shufflevector(x, x, 1, 0, 3, 2); }
/// a and b in turn.
[[gnu::always_inline]] inline void interleave(Longs a, Longs b, Longs& low, Longs& high) {
  low = __builtin_shufflevector(a, b, 0, 2);
  high = __builtin_shufflevector(a, b, 1, 3);
}
/// Of the numbers of a and then b: every second one, from the first; from the second; and both put together.
[[gnu::always_inline]] inline Floats evens(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
[[gnu::always_inline]] inline Floats odds(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}
[[gnu::always_inline]] inline void interleave(Floats even, Floats odd, Floats& low, Floats& high) {
  low = __builtin_shufflevector(even, odd, 0, 4, 1, 5);
  high = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
}
/// The product of the lower halves of each 64 bits.
[[gnu::always_inline]] inline Longs multiply_halves(Longs a, Longs b) {
  return (a & 0xffffffffU) * (b & 0xffffffffU);
}

// IEEE binary16 by arithmetic on the codes, as base/half.h has it: so many steps that they are not written
// out at every load and store.
[[gnu::noinline]] inline Floats widen_f16(Codes codes) {
  const Words code = __builtin_convertvector(codes, Words);
  const Words rest = code & 0x7fffU;
  const Words normal = (rest << 13) + (112U << 23);
  const Floats tiny = __builtin_convertvector((Ints)rest, Floats) * 0x1p-24F;
  const Words special = (Words)(rest > 0x7c00U ? (0x7fc00000U | rest << 13) : Words{} + 0x7f800000U);
  const Words number = (Words)(rest < 0x400U ? (Words)tiny : normal);
  return (Floats)((code & 0x8000U) << 16 | (Words)(rest >= 0x7c00U ? special : number));
}
[[gnu::noinline]] inline Codes shorten_f16(Floats x) {
  const Words bits = (Words)x;
  const Words rest = bits & 0x7fffffffU;
  const Words normal = (rest - (112U << 23) + (rest >> 13 & 1U) + 0xfffU) >> 13;
  const Floats anchor = Floats{} + 0.5F;
  const Words denormal = (Words)((Floats)rest + anchor) - (Words)anchor;
  const Words number = (Words)(rest < (113U << 23) ? denormal : normal);
  const Words finite = (Words)(number > 0x7c00U ? Words{} + 0x7c00U : number);
  const Words payload = (rest >> 13 & 0x3ffU) | 0x7e00U;
  const Words top = (Words)(rest > 0x7f800000U ? payload : Words{} + 0x7c00U);
  const Words whole = (Words)(rest >= 0x7f800000U ? top : finite);
  return __builtin_convertvector(whole | bits >> 31 << 15, Codes);
}
[[gnu::always_inline]] inline Words widen(Codes x) { return __builtin_convertvector(x, Words); }
[[gnu::always_inline]] inline Codes truncate(Words x) { return __builtin_convertvector(x, Codes); }

/// Rounded to bf16 in the upper halves, to the nearest, ties to even, NaN made quiet; the lower halves are
/// whatever they are.
[[gnu::always_inline]] inline Words round_bf16(Floats x) {
  const Words bits = (Words)x;
  return (x == x) ? bits + 0x7fffU + (bits >> 16 & 1U) : (bits | 0x400000U);
}
/// The upper halves of both, those of odd above those of even.
[[gnu::always_inline]] inline Words join_upper(Words even, Words odd) {
  return even >> 16 | (odd & 0xffff0000U);
}

// Stores past the caches have no portable form; the plain ones mean the same.
[[gnu::always_inline]] inline void stream(float* to, Floats x) { __builtin_memcpy(to, &x, sizeof x); }
[[gnu::always_inline]] inline void stream(std::uint16_t* to, Codes x) { __builtin_memcpy(to, &x, sizeof x); }
[[gnu::always_inline]] inline void finish_streams() {}

}  // namespace weft::fast::WEFT_ISA
