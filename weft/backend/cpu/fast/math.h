// Exponentials and their kin on sixteen numbers: the same bits on every instruction set. For sources of
// loops/ only.
#pragma once

#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

/// c[0] + c[1] x + c[2] x^2 + …
template <int n>
[[gnu::always_inline]] inline F polynomial(F x, const float (&c)[n]) {
  F sum = all(c[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = sum * x + all(c[i]);
  return sum;
}

/// e^x within 2 units in the last place, down to the denormals and up to infinity; NaN stays NaN.
[[gnu::always_inline]] inline F exponential(F x) {
  // Beyond these the answer is infinity and 0 whatever x is.
  const F high = all(89.0F);
  const F low = all(-104.0F);
  x = choose(high < x, high, x);
  x = choose(x < low, low, x);
  // x = n log 2 + r, |r| <= log 2 / 2. The upper part of log 2 has 9 bits, so n times it is exact.
  const F magic = all(0x1.8p23F);
  const F shifted = x * all(1.44269504F) + magic;
  const F n = shifted - magic;
  const F r = (x - n * all(0.693359375F)) + n * all(2.12194440e-4F);
  constexpr float c[] = {5.0000001201E-1F, 1.6666665459E-1F, 4.1665795894E-2F,
                         8.3334519073E-3F, 1.3981999507E-3F, 1.9875691500E-4F};
  const F e = (polynomial(r, c) * (r * r) + r) + all(1.0F);
  // 2^n in two steps: one alone cannot reach the denormals.
  const I whole = as_ints(shifted) - as_ints(magic);
  const I half = whole >> 1;
  const I rest = whole - half;
  const auto power = [](I k) __attribute__((always_inline)) { return as_floats((k + all(127)) << 23); };
  return (e * power(half)) * power(rest);
}

/// 1 / (1 + e^-x)
[[gnu::always_inline]] inline F sigmoid(F x) { return all(1.0F) / (all(1.0F) + exponential(all(0.0F) - x)); }

[[gnu::always_inline]] inline F hyperbolic_tangent(F x) {
  const F size = absolute(x);
  // Small x: x + x^3 p(x^2), because 1 - 2 / (e^2x + 1) cancels there.
  const F z = x * x;
  constexpr float c[] = {-3.33332819422E-1F, 1.33314422036E-1F, -5.37397155531E-2F, 2.06390887954E-2F,
                         -5.70498872745E-3F};
  const F small = x + x * (z * polynomial(z, c));
  const F large = all(1.0F) - all(2.0F) / (exponential(size + size) + all(1.0F));
  return choose(size < all(0.625F), small, with_sign(large, x));
}

/// The normal distribution's share below x, with a small relative error even far below 0:
/// erfc(z) = t exp(-z^2 + p(t)), t = 1 / (1 + z / 2), z >= 0 (Chebyshev fit, relative error below 1.2e-7).
[[gnu::always_inline]] inline F normal_share(F x) {
  const F z = absolute(x) * all(0.70710678F);
  const F t = all(1.0F) / (all(1.0F) + all(0.5F) * z);
  constexpr float c[] = {-1.26551223F, 1.00002368F,  0.37409196F, 0.09678418F,  -0.18628806F,
                         0.27886807F,  -1.13520398F, 1.48851587F, -0.82215223F, 0.17087277F};
  const F tail = all(0.5F) * t * exponential(polynomial(t, c) - z * z);
  return choose(x < all(0.0F), tail, all(1.0F) - tail);
}

}  // namespace weft::fast::WEFT_ISA
