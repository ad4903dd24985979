// The widest registers of an instruction set: AVX-512 F, BW, DQ, VL.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace weft::fast::WEFT_ISA {

inline constexpr int width = 16;
using Floats [[gnu::vector_size(64)]] = float;
using Ints [[gnu::vector_size(64)]] = std::int32_t;
using Words [[gnu::vector_size(64)]] = std::uint32_t;
using Longs [[gnu::vector_size(64)]] = std::uint64_t;
using Doubles [[gnu::vector_size(64)]] = double;
using Codes [[gnu::vector_size(32)]] = std::uint16_t;
using Fours [[gnu::vector_size(16)]] = float;

[[gnu::always_inline]] inline Floats root(Floats x) { return (Floats)_mm512_sqrt_ps((__m512)x); }

[[gnu::always_inline]] inline Doubles lower_half(Floats x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7), Doubles);
}
[[gnu::always_inline]] inline Doubles upper_half(Floats x) {
  return __builtin_convertvector(__builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15), Doubles);
}
using Eights [[gnu::vector_size(32)]] = float;
/// Sixteen numbers to four: halves joined with halves, then halves of these.
template <class Join>
[[gnu::always_inline]] inline Fours to_four(const Floats (&x)[1], const Join& join) {
  const Eights low = __builtin_shufflevector(x[0], x[0], 0, 1, 2, 3, 4, 5, 6, 7);
  const Eights high = __builtin_shufflevector(x[0], x[0], 8, 9, 10, 11, 12, 13, 14, 15);
  const Eights eight = join(low, high);
  const Fours lower = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  const Fours upper = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return join(lower, upper);
}
/// Each pair of neighbours the other way round.
[[gnu::always_inline]] inline Floats swapped(Floats x) {
  return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}
/// a and b in turn.
[[gnu::always_inline]] inline void interleave(Longs a, Longs b, Longs& low, Longs& high) {
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
/// Of the numbers of a and then b: every second one, from the first; from the second; and both put together.
[[gnu::always_inline]] inline Floats evens(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
[[gnu::always_inline]] inline Floats odds(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
[[gnu::always_inline]] inline void interleave(Floats even, Floats odd, Floats& low, Floats& high) {
  low = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  high = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
/// The product of the lower halves of each 64 bits.
[[gnu::always_inline]] inline Longs multiply_halves(Longs a, Longs b) {
  return (Longs)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}

[[gnu::always_inline]] inline Floats widen_f16(Codes codes) {
  return (Floats)_mm512_cvtph_ps((__m256i)codes);
}
[[gnu::always_inline]] inline Codes shorten_f16(Floats x) {
  return (Codes)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
[[gnu::always_inline]] inline Words widen(Codes x) { return (Words)_mm512_cvtepu16_epi32((__m256i)x); }
/// Of numbers below 2^16.
[[gnu::always_inline]] inline Codes truncate(Words x) { return (Codes)_mm512_cvtepi32_epi16((__m512i)x); }

/// Rounded to bf16 in the upper halves, to the nearest, ties to even, NaN made quiet; the lower halves are
/// whatever they are.
[[gnu::always_inline]] inline Words round_bf16(Floats x) {
  const __m512i bits = (__m512i)x;
  const __m512i up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i number = _mm512_mask_add_epi32(up, odd, up, _mm512_set1_epi32(1));
  // Where x is no number, x made quiet.
  constexpr int quiet_both = 0x22;
  return (Words)_mm512_fixupimm_ps((__m512)number, (__m512)x, _mm512_set1_epi32(quiet_both), 0);
}
/// The upper halves of both, those of odd above those of even.
[[gnu::always_inline]] inline Words join_upper(Words even, Words odd) {
  constexpr int either = 0xF8;  // even | odd & mask
  return (Words)_mm512_ternarylogic_epi32(_mm512_srli_epi32((__m512i)even, 16), (__m512i)odd,
                                          _mm512_set1_epi32(int(0xffff0000U)), either);
}

// Past the caches; addresses are multiples of the register.
[[gnu::always_inline]] inline void stream(float* to, Floats x) { _mm512_stream_ps(to, (__m512)x); }
[[gnu::always_inline]] inline void stream(std::uint16_t* to, Codes x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)x);
}
[[gnu::always_inline]] inline void finish_streams() { _mm_sfence(); }

}  // namespace weft::fast::WEFT_ISA
