// What math.h and drops.h ask of the registers beyond native.h: AVX-512.
#pragma once

#include <native.h>

namespace weft::fast::WEFT_ISA {

/// a b + c, rounded once.
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
[[gnu::always_inline]] inline Floats added_product(Floats a, Floats b, Floats c) { return fused(a, b, c); }
/// The second where either is no number.
[[gnu::always_inline]] inline Floats least(Floats a, Floats b) {
  return (Floats)_mm512_min_ps((__m512)a, (__m512)b);
}
[[gnu::always_inline]] inline Floats most(Floats a, Floats b) {
  return (Floats)_mm512_max_ps((__m512)a, (__m512)b);
}
/// |x|, but at most the limit; also where x is no number.
[[gnu::always_inline]] inline Floats size_within(Floats limit, Floats x) {
  constexpr int lesser_without_sign = 0x0A;
  return (Floats)_mm512_range_ps((__m512)x, (__m512)limit, lesser_without_sign);
}
/// x 2^n for whole n, rounded once.
[[gnu::always_inline]] inline Floats times_power(Floats x, Floats n) {
  return (Floats)_mm512_scalef_ps((__m512)x, (__m512)n);
}
/// t less the whole number next to it, 0 for what is infinite.
[[gnu::always_inline]] inline Floats beyond_whole(Floats t) {
  constexpr int nearest = 0x08;
  return (Floats)_mm512_reduce_ps((__m512)t, nearest);
}
/// x 2^n, rounded once, where n is the whole number next to t and 0.7 <= x <= 1.5.
[[gnu::always_inline]] inline Floats times_whole_power(Floats x, Floats t) {
  return times_power(x, t - beyond_whole(t));
}
/// t less the whole number below it, where t is not negative or its power is of no account: the rest of a
/// negative t is rounded otherwise than on other sets.
[[gnu::always_inline]] inline Floats above_floor(Floats t) {
  constexpr int downwards = 0x09;
  return (Floats)_mm512_reduce_ps((__m512)t, downwards);
}
/// x 2^n, rounded once, where n is the whole number below t.
[[gnu::always_inline]] inline Floats times_floor_power(Floats x, Floats t) { return times_power(x, t); }
[[gnu::always_inline]] inline Longs upper_halves(Longs x) {
  return (Longs)_mm512_shuffle_epi32((__m512i)x, _MM_PERM_DDBB);
}
[[gnu::always_inline]] inline Longs exclusive_or(Longs a, Longs b, Longs c) {
  return (Longs)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
/// The lower halves of a, and those of b above them.
[[gnu::always_inline]] inline Longs lower_pairs(Longs a, Longs b) {
  return (Longs)_mm512_mask_shuffle_epi32((__m512i)a, 0xAAAA, (__m512i)b, _MM_PERM_CCAA);
}

}  // namespace weft::fast::WEFT_ISA
