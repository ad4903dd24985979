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

/// c[0] + c[1] x + c[2] x^2 + …
template <int n>
[[gnu::always_inline]] inline F polynomial(F x, const float (&c)[n]) {
  F sum = all(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = fused(sum, x, all(c[i]));
  return sum;
}

/// e^x within 2 units in the last place, down to the denormals and, where `high` is 89 or more, up to
/// infinity; above `high` it is e^high. NaN stays NaN.
[[gnu::always_inline]] inline F exponential(F x, float high = 89.0F) {
  x = most(all(-104.0F), least(all(high), x));
  // x = n log 2 + r, |r| <= log 2 / 2
  const F magic = all(0x1.8p23F);
  const F n = fused(x, all(1.44269504F), magic) - magic;
  const F r = fused(n, all(2.12194440e-4F), fused(n, all(-0.693359375F), x));
  constexpr float c[] = {5.0000001201E-1F, 1.6666665459E-1F, 4.1665795894E-2F,
                         8.3334519073E-3F, 1.3981999507E-3F, 1.9875691500E-4F};
  return times_power(fused(polynomial(r, c), r * r, r) + all(1.0F), n);
}

/// 1 / d within 2 units in the last place, 2^-100 <= d <= 2^120. A division would hold up its port for
/// sixteen cycles.
[[gnu::always_inline]] inline F reciprocal(F d) {
  // The exponent changes its sign in the first guess, which is off by at most 1/8; each step cubes that.
  F y = as_floats(all(0x7EF311C7) - as_ints(d));
  const F minus = all(0.0F) - d;
  for (int step = 0; step < 2; ++step) {
    const F off = fused(minus, y, all(1.0F));
    y = fused(y, fused(off, off, off), y);
  }
  return y;
}

/// 1 / (1 + e^-x); not below e^-80
[[gnu::always_inline]] inline F sigmoid(F x) {
  return reciprocal(all(1.0F) + exponential(all(0.0F) - x, 80.0F));
}

[[gnu::always_inline]] inline F hyperbolic_tangent(F x) {
  const F size = absolute(x);
  // Small x: x + x^3 p(x^2), because 1 - 2 / (e^2x + 1) cancels there.
  const F z = x * x;
  constexpr float c[] = {-3.33332819422E-1F, 1.33314422036E-1F, -5.37397155531E-2F, 2.06390887954E-2F,
                         -5.70498872745E-3F};
  const F small = fused(x, z * polynomial(z, c), x);
  const F large = fused(all(-2.0F), reciprocal(exponential(size + size, 80.0F) + all(1.0F)), all(1.0F));
  return choose(size < all(0.625F), small, with_sign(large, x));
}

/// The normal distribution's share below x, with a small relative error even far below 0:
/// erfc(z) = t exp(-z^2 + p(t)), t = 1 / (1 + z / 2), z >= 0 (Chebyshev fit, relative error below 1.2e-7).
[[gnu::always_inline]] inline F normal_share(F x) {
  const F z = least(all(20.0F), absolute(x) * all(0.70710678F));  // beyond, the tail is 0
  const F t = reciprocal(fused(all(0.5F), z, all(1.0F)));
  constexpr float c[] = {-1.26551223F, 1.00002368F,  0.37409196F, 0.09678418F,  -0.18628806F,
                         0.27886807F,  -1.13520398F, 1.48851587F, -0.82215223F, 0.17087277F};
  const F tail = all(0.5F) * t * exponential(fused(all(0.0F) - z, z, polynomial(t, c)));
  return choose(x < all(0.0F), tail, all(1.0F) - tail);
}

}  // namespace weft::fast::WEFT_ISA
