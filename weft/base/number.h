// Whole numbers that must come out even: exact division, checked narrowing, checked products, rounding up.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"

namespace weft {

/// a / b where b divides a; says so where it does not.
template <std::integral T>
constexpr T exact(T a, std::type_identity_t<T> b, At at = Kind::internal) {
  if (b == 0) fail(at, +a, " cannot be divided by 0");
  if (a % b != 0) fail(at, +a, " is not a multiple of ", +b);
  return static_cast<T>(a / b);
}

/// x as another integer type, where it fits.
template <std::integral To, std::integral From>
constexpr To narrow(From x, At at = Kind::internal) {
  if (!std::in_range<To>(x))
    fail(at, +x, " does not fit in ", sizeof(To) * 8, std::is_signed_v<To> ? " bits" : " unsigned bits");
  return static_cast<To>(x);
}

/// a * b where the product can be written.
inline std::int64_t product(std::int64_t a, std::int64_t b, At at = Kind::shape) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) fail(at, a, " times ", b, " is more than 64 bits hold");
  return out;
}

/// a / b, rounded up; for a >= 0 and b > 0.
template <std::integral T>
constexpr T divide_up(T a, std::type_identity_t<T> b) {
  return static_cast<T>(a / b + (a % b != 0 ? 1 : 0));
}

/// The smallest multiple of b that is at least a.
template <std::integral T>
constexpr T round_up(T a, std::type_identity_t<T> b) {
  return static_cast<T>(divide_up(a, b) * b);
}

}  // namespace weft
