// The widest registers of an instruction set: AVX2 with F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace weft::fast::WEFT_ISA {

inline constexpr int width = 8;
using Floats [[gnu::vector_size(32)]] = float;
using Ints [[gnu::vector_size(32)]] = std::int32_t;
using Words [[gnu::vector_size(32)]] = std::uint32_t;
using Longs [[gnu::vector_size(32)]] = std::uint64_t;
using Doubles [[gnu::vector_size(32)]] = double;
using Codes [[gnu::vector_size(16)]] = std::uint16_t;
using Fours [[gnu::vector_size(16)]] = float;

[[gnu::always_inline]] inline Floats root(Floats x) { return (Floats)_mm256_sqrt_ps((__m256)x); }

[[gnu::always_inline]] inline Doubles lower_half(Floats x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3), Doubles);
}
[[gnu::always_inline]] inline Doubles upper_half(Floats x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, 4, 5, 6, 7), Doubles);
}
/// Sixteen numbers to four: halves joined with halves, then halves of these.
template <class Join>
[[gnu::always_inline]] inline Fours to_four(const Floats (&x)[2], const Join& join) {
  const Floats eight = join(x[0], x[1]);
  const Fours lower = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  const Fours upper = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return join(lower, upper);
}
/// Each pair of neighbours the other way round.
[[gnu::always_inline]] inline Floats swapped(Floats x) {
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
}
/// a and b in turn.
[[gnu::always_inline]] inline void interleave(Longs a, Longs b, Longs& low, Longs& high) {
  low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
/// Of the numbers of a and then b: every second one, from the first; from the second; and both put together.
[[gnu::always_inline]] inline Floats evens(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}
[[gnu::always_inline]] inline Floats odds(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
[[gnu::always_inline]] inline void interleave(Floats even, Floats odd, Floats& low, Floats& high) {
  low = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
}
/// The product of the lower halves of each 64 bits.
[[gnu::always_inline]] inline Longs multiply_halves(Longs a, Longs b) {
  return (Longs)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}

[[gnu::always_inline]] inline Floats widen_f16(Codes codes) {
  return (Floats)_mm256_cvtph_ps((__m128i)codes);
}
[[gnu::always_inline]] inline Codes shorten_f16(Floats x) {
  return (Codes)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
}
[[gnu::always_inline]] inline Words widen(Codes x) { return (Words)_mm256_cvtepu16_epi32((__m128i)x); }
/// Of numbers below 2^16.
[[gnu::always_inline]] inline Codes truncate(Words x) {
  const __m256i all = (__m256i)x;
  return (Codes)_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

/// Rounded to bf16 in the upper halves, to the nearest, ties to even, NaN made quiet; the lower halves are
/// whatever they are.
[[gnu::always_inline]] inline Words round_bf16(Floats x) {
  const Words bits = (Words)x;
  return (x == x) ? bits + 0x7fffU + (bits >> 16 & 1U) : (bits | 0x400000U);
}
/// The upper halves of both, those of odd above those of even.
[[gnu::always_inline]] inline Words join_upper(Words even, Words odd) {
  return (Words)_mm256_blend_epi16((__m256i)(even >> 16), (__m256i)odd, 0xAA);
}

// Past the caches; addresses are multiples of the register.
[[gnu::always_inline]] inline void stream(float* to, Floats x) { _mm256_stream_ps(to, (__m256)x); }
[[gnu::always_inline]] inline void stream(std::uint16_t* to, Codes x) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)x);
}
[[gnu::always_inline]] inline void finish_streams() { _mm_sfence(); }

}  // namespace weft::fast::WEFT_ISA
