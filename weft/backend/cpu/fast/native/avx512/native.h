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
using Codes [[gnu::vector_size(32)]] = std::uint16_t;

[[gnu::always_inline]] inline Floats root(Floats x) { return (Floats)_mm512_sqrt_ps((__m512)x); }

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

// Past the caches; addresses are multiples of the register.
[[gnu::always_inline]] inline void stream(float* to, Floats x) { _mm512_stream_ps(to, (__m512)x); }
[[gnu::always_inline]] inline void stream(std::uint16_t* to, Codes x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)x);
}
[[gnu::always_inline]] inline void finish_streams() { _mm_sfence(); }

}  // namespace weft::fast::WEFT_ISA
