// Exponentials and their kin on sixteen numbers: the same bits on every instruction set. For sources of
// loops/ only.
#pragma once

#include <arithmetic.h>

#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

/// a b + c, rounded once.
[[gnu::always_inline]] inline F fused(F a, F b, F c) {
  for (int i = 0; i < parts; ++i) a.part[i] = fused(a.part[i], b.part[i], c.part[i]);
  return a;
}
/// The second where either is no number.
[[gnu::always_inline]] inline F least(F a, F b) {
  for (int i = 0; i < parts; ++i) a.part[i] = least(a.part[i], b.part[i]);
  return a;
}
[[gnu::always_inline]] inline F most(F a, F b) {
  for (int i = 0; i < parts; ++i) a.part[i] = most(a.part[i], b.part[i]);
  return a;
}
[[gnu::always_inline]] inline F times_power(F x, F n) {
  for (int i = 0; i < parts; ++i) x.part[i] = times_power(x.part[i], n.part[i]);
  return x;
}
[[gnu::always_inline]] inline F times_whole_power(F x, F t) {
  for (int i = 0; i < parts; ++i) x.part[i] = times_whole_power(x.part[i], t.part[i]);
  return x;
}
[[gnu::always_inline]] inline F beyond_whole(F t) {
  for (int i = 0; i < parts; ++i) t.part[i] = beyond_whole(t.part[i]);
  return t;
}

/// c[0] + c[1] x + c[2] x^2 + …
template <int n>
[[gnu::always_inline]] inline F polynomial(F x, const float (&c)[n]) {
  F sum = all(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = fused(sum, x, all(c[i]));
  return sum;
}

/// 2^t, as good as a polynomial of beyond_whole(t) with these coefficients. NaN stays NaN.
template <int n>
[[gnu::always_inline]] inline F power_by(F t, const float (&c)[n]) {
  return times_whole_power(polynomial(beyond_whole(t), c), t);
}
/// 2^t within 2 units in the last place, down to the denormals and up to infinity.
[[gnu::always_inline]] inline F power(F t) {
  constexpr float c[] = {1.0F,           0.693147182F,   0.240226477F,  0.0555033237F,
                         0.00961843692F, 0.00133988739F, 0.00015353362F};
  return power_by(t, c);
}
/// Within 1e-7 of it, to be added up.
[[gnu::always_inline]] inline F summed_power(F t) {
  constexpr float c[] = {1.0F, 0.693147004F, 0.240222424F, 0.0555073358F, 0.00967151299F, 0.00132647273F};
  return power_by(t, c);
}
/// Within 3e-6 of it, to be rounded to sixteen bits.
[[gnu::always_inline]] inline F coarse_power(F t) {
  constexpr float c[] = {1.0F, 0.693124175F, 0.240240991F, 0.0559064262F, 0.00958285294F};
  return power_by(t, c);
}

inline constexpr float log2_of_e = 1.44269504F;

/// e^x within 2 units in the last place, down to the denormals and up to infinity. NaN stays NaN. power(x
/// log2 e) is cheaper, and further off by x / 2 units.
[[gnu::always_inline]] inline F exponential(F x) {
  x = most(all(-104.0F), least(all(89.0F), x));
  // x = n log 2 + r, |r| <= log 2 / 2
  const F magic = all(0x1.8p23F);
  const F n = fused(x, all(log2_of_e), magic) - magic;
  const F r = fused(n, all(2.12194440e-4F), fused(n, all(-0.693359375F), x));
  constexpr float c[] = {1.0F, 1.0F, 0.49999994F, 0.16666429F, 4.166802E-2F, 8.37439E-3F, 1.38434E-3F};
  return times_power(polynomial(r, c), n);
}

/// 1 / (1 + e^-x), x given in powers of two: x log2 e.
[[gnu::always_inline]] inline F sigmoid_of_power(F t) {
  return all(1.0F) / (all(1.0F) + power(all(0.0F) - t));
}
[[gnu::always_inline]] inline F sigmoid(F x) { return sigmoid_of_power(all(log2_of_e) * x); }

[[gnu::always_inline]] inline F hyperbolic_tangent(F x) {
  const F size = absolute(x);
  // Small x: x + x^3 p(x^2), because 1 - 2 / (e^2x + 1) cancels there.
  const F z = x * x;
  constexpr float c[] = {-3.33332819422E-1F, 1.33314422036E-1F, -5.37397155531E-2F, 2.06390887954E-2F,
                         -5.70498872745E-3F};
  const F small = fused(x, z * polynomial(z, c), x);
  const F large = all(1.0F) - all(2.0F) / (power(all(2 * log2_of_e) * size) + all(1.0F));
  return choose(size < all(0.625F), small, with_sign(large, x));
}

/// e^(-x^2 / 2)
[[gnu::always_inline]] inline F bell(F x) { return power(all(-0.72134752F) * (x * x)); }

/// The normal distribution's share beyond |x|, over bell(x): erfcx(|x| / sqrt 2) / 2 as a quotient within
/// 1e-8.
struct Quotient {
  F over, under, size;  // size: |x|, at most 20
};
[[gnu::always_inline]] inline Quotient tail_over_bell(F x) {
  const F z = least(all(20.0F), absolute(x));  // beyond, the bell is 0
  constexpr float over[] = {0.5F, 0.438296877F, 0.183236555F, 4.06337014E-2F, 4.11637876E-3F};
  constexpr float under[] = {1.0F, 1.67447874F, 1.20250905F, 0.469474369F, 0.101860031F, 1.03181117E-2F};
  return {polynomial(z, over), polynomial(z, under), z};
}

}  // namespace weft::fast::WEFT_ISA
