// A pair of normal numbers with bits of their own, from two random words: logarithm, sine and cosine are
// polynomials here. Whoever includes it is compiled without fused multiply-add.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// What the pair is made of. The functions are inlined by order: g++ would leave a call in the loop of
// fill_normal, and no vector code.
namespace normal {

// log x for normal x > 0:  x = 2^k m, m in [sqrt(1/2), sqrt(2));  log m = 2 atanh(z), z = (m - 1) / (m + 1),
// |z| < 0.172. The first term left out is z^21/21: below 1e-17.
[[gnu::always_inline]] constexpr double logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t half_root = 0x3fe6a09e667f3bcdu;  // sqrt(1/2)
  const std::uint64_t moved = bits - half_root;
  // The exponent in a 32-bit integer, which SSE2 can turn into a double where it cannot a 64-bit one.
  const double k = static_cast<std::int32_t>(static_cast<std::uint32_t>(moved >> 52) << 20) >> 20;
  const double m = std::bit_cast<double>((moved & 0xfffffffffffffu) + half_root);
  const double z = (m - 1) / (m + 1);
  const double q = z * z;
  double sum = 1.0 / 19;
  sum = sum * q + 1.0 / 17;
  sum = sum * q + 1.0 / 15;
  sum = sum * q + 1.0 / 13;
  sum = sum * q + 1.0 / 11;
  sum = sum * q + 1.0 / 9;
  sum = sum * q + 1.0 / 7;
  sum = sum * q + 1.0 / 5;
  sum = sum * q + 1.0 / 3;
  sum = sum * q + 1;
  return k * 0.693147180559945309417232121458 + 2 * z * sum;
}

// Newton's steps on an estimate from the exponent: the library's square root is exact too, but may set errno
// and so stays out of vector loops. Five steps from a relative error of 0.035 reach the last bit or the one
// beside it.
[[gnu::always_inline]] constexpr double root(double x) {
  const double y0 = std::bit_cast<double>(0x5fe6eb50c7b537a9u - (std::bit_cast<std::uint64_t>(x) >> 1));
  const double half = 0.5 * x;
  double y = y0 * (1.5 - half * y0 * y0);
  y = y * (1.5 - half * y * y);
  y = y * (1.5 - half * y * y);
  y = y * (1.5 - half * y * y);
  y = y * (1.5 - half * y * y);
  return x * y;
}

// sin(2 pi t) and cos(2 pi t), Taylor on |angle| <= pi/4 after taking off the nearest quarter turn q.
struct SineCosine {
  double sine, cosine;
};
[[gnu::always_inline]] constexpr SineCosine turn(double t) {
  const auto quarter = static_cast<std::int32_t>(t * 4 + 0.5);
  const double angle = (t - quarter * 0.25) * 6.283185307179586476925286766559;
  const double q = angle * angle;
  double s = 1.0 / 1307674368000;
  s = 1.0 / 6227020800 - q * s;
  s = 1.0 / 39916800 - q * s;
  s = 1.0 / 362880 - q * s;
  s = 1.0 / 5040 - q * s;
  s = 1.0 / 120 - q * s;
  s = 1.0 / 6 - q * s;
  s = angle - angle * q * s;
  double c = 1.0 / 87178291200;
  c = 1.0 / 479001600 - q * c;
  c = 1.0 / 3628800 - q * c;
  c = 1.0 / 40320 - q * c;
  c = 1.0 / 720 - q * c;
  c = 1.0 / 24 - q * c;
  c = 0.5 - q * c;
  c = 1 - q * c;
  const double side = (quarter & 1) != 0 ? c : s;
  const double front = (quarter & 1) != 0 ? s : c;
  return {(quarter & 2) != 0 ? -side : side, ((quarter + 1) & 2) != 0 ? -front : front};
}

}  // namespace normal

struct NormalPair {
  float first, second;
};
// Box-Muller: r = sqrt(-2 log u), u in (0, 1];  (r cos, r sin) of a uniform angle.
[[gnu::always_inline]] constexpr NormalPair normal_pair(std::uint32_t a, std::uint32_t b) {
  // Halves by way of signed numbers, which SSE2 converts in one instruction.
  const double u = (static_cast<std::int32_t>(a ^ 0x80000000u) + 2147483648.5) * 0x1p-32;
  const double t = (static_cast<std::int32_t>(b ^ 0x80000000u) + 2147483648.0) * 0x1p-32;
  const double r = normal::root(-2 * normal::logarithm(u));
  const normal::SineCosine at = normal::turn(t);
  return {static_cast<float>(r * at.cosine), static_cast<float>(r * at.sine)};
}

}  // namespace weft
