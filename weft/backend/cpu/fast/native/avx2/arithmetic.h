// What math.h and drops.h ask of the registers beyond native.h: AVX2 with FMA.
#pragma once

#include <native.h>

namespace weft::fast::WEFT_ISA {

/// a b + c, rounded once.
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
[[gnu::always_inline]] inline Floats added_product(Floats a, Floats b, Floats c) { return fused(a, b, c); }
/// The second where either is no number.
[[gnu::always_inline]] inline Floats least(Floats a, Floats b) {
  return (Floats)_mm256_min_ps((__m256)a, (__m256)b);
}
[[gnu::always_inline]] inline Floats most(Floats a, Floats b) {
  return (Floats)_mm256_max_ps((__m256)a, (__m256)b);
}
[[gnu::always_inline]] inline Longs upper_halves(Longs x) {
  return (Longs)_mm256_shuffle_epi32((__m256i)x, 0xF5);
}
[[gnu::always_inline]] inline Longs exclusive_or(Longs a, Longs b, Longs c) { return a ^ b ^ c; }
/// The lower halves of a, and those of b above them.
[[gnu::always_inline]] inline Longs lower_pairs(Longs a, Longs b) {
  return (Longs)_mm256_blend_epi32((__m256i)a, _mm256_shuffle_epi32((__m256i)b, 0xA0), 0xAA);
}

}  // namespace weft::fast::WEFT_ISA

// After least and most, which it uses.
#include "weft/backend/cpu/fast/native/powers.h"
