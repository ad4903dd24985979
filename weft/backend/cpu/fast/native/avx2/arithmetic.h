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
/// x 2^n for whole n in [-150, 129]: in two steps, because one alone cannot reach the denormals.
[[gnu::always_inline]] inline Floats times_power(Floats x, Floats n) {
  const Ints whole = (Ints)_mm256_cvttps_epi32((__m256)n);
  const Ints half = whole >> 1;
  return (x * (Floats)((half + 127) << 23)) * (Floats)((whole - half + 127) << 23);
}
/// t, but no further than just beyond the powers that a float has; and the whole number next to that.
[[gnu::always_inline]] inline Floats in_reach(Floats t) {
  return most(Floats{} - 151.0F, least(Floats{} + 129.0F, t));
}
[[gnu::always_inline]] inline Floats next_whole(Floats reached) { return (reached + 0x1.8p23F) - 0x1.8p23F; }
/// t less the whole number next to it, 0 for what is infinite.
[[gnu::always_inline]] inline Floats beyond_whole(Floats t) {
  const Floats reached = in_reach(t);
  return reached - next_whole(reached);
}
/// x 2^n, rounded once, where n is the whole number next to t and 0.7 <= x <= 1.5.
[[gnu::always_inline]] inline Floats times_whole_power(Floats x, Floats t) {
  return times_power(x, next_whole(in_reach(t)));
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
