// What math.h and drops.h ask of the registers beyond native.h: any 64-bit processor.
#pragma once

#include <native.h>

namespace weft::fast::WEFT_ISA {

/// a b + c, rounded once. Without an instruction for it these are calls, which are not written out
/// everywhere.
#ifdef __ARM_FEATURE_FMA
[[gnu::always_inline]]
#else
[[gnu::noinline]]
#endif
inline Floats
fused(Floats a, Floats b, Floats c) {
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
[[gnu::always_inline]] inline Longs upper_halves(Longs x) { return x >> 32; }
[[gnu::always_inline]] inline Longs exclusive_or(Longs a, Longs b, Longs c) { return a ^ b ^ c; }
/// The lower halves of a, and those of b above them.
[[gnu::always_inline]] inline Longs lower_pairs(Longs a, Longs b) { return (a & 0xffffffffU) | b << 32; }

}  // namespace weft::fast::WEFT_ISA

// After least and most, which it uses.
#include "weft/backend/cpu/fast/native/powers.h"
