// What math.h and drops.h ask of the registers beyond native.h: any 64-bit processor.
#pragma once

#include <native.h>

namespace weft::fast::WEFT_ISA {

/// a b + c, rounded once.
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  for (int i = 0; i < width; ++i) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return a;
}
/// a b + c, rounded once where the processor has an instruction for it, else twice: always the same way.
[[gnu::always_inline]] inline Floats added_product(Floats a, Floats b, Floats c) {
#ifdef __ARM_FEATURE_FMA
  return fused(a, b, c);
#else
  return a * b + c;
#endif
}
/// The second where either is no number.
[[gnu::always_inline]] inline Floats least(Floats a, Floats b) { return a < b ? a : b; }
[[gnu::always_inline]] inline Floats most(Floats a, Floats b) { return a > b ? a : b; }
/// x 2^n for whole n in [-150, 129]: in two steps, because one alone cannot reach the denormals.
[[gnu::always_inline]] inline Floats times_power(Floats x, Floats n) {
  const Ints whole = __builtin_convertvector(n, Ints);
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
[[gnu::always_inline]] inline Longs upper_halves(Longs x) { return x >> 32; }
[[gnu::always_inline]] inline Longs exclusive_or(Longs a, Longs b, Longs c) { return a ^ b ^ c; }
/// The lower halves of a, and those of b above them.
[[gnu::always_inline]] inline Longs lower_pairs(Longs a, Longs b) { return (a & 0xffffffffU) | b << 32; }

}  // namespace weft::fast::WEFT_ISA
