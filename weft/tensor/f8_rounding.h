// How a number becomes one of eight bits under a scale: the same on every device, to the bit.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "weft/tensor/args.h"

namespace weft {

/// To the nearest, ties to even; what is too large, infinities too, becomes the largest. F8 is f8e4m3 or
/// f8e5m2. Selects only, so that a loop over it becomes vector code.
template <class F8>
constexpr F8 saturated(float x) {
  constexpr float most = largest_of(dtype_of<F8>);
  return F8(x > most ? most : x < -most ? -most : x);
}

/// Under a scale; what is not finite becomes NaN.
template <class F8>
constexpr F8 scaled_to(float x, float scale) {
  const bool finite = x - x == 0;
  return saturated<F8>(finite ? x * scale : std::numeric_limits<float>::quiet_NaN());
}

/// The scale that follows from the greatest |x| that was met; `before` where that was nothing but zeros.
constexpr float next_scale(float greatest, float before, float largest, float by_margin) {
  if (!(greatest > 0)) return before;
  const float next = largest / greatest * by_margin;
  return next > std::numeric_limits<float>::max() ? std::numeric_limits<float>::max() : next;
}

/// What the numbers of a block are multiplied by: the greatest power of two under which the greatest of them,
/// |x|, is none too large for the type. Kept are one over it, or an exponent (OCP's E8M0, whose rounding up
/// Transformer Engine's is: what is at most 2^-127 is taken for that).
struct BlockScale {
  float scale = 1, inverse = 1;
  std::uint8_t exponent = 0;
};
constexpr BlockScale scale_of_block(float greatest, float largest) {
  if (!(greatest > 0)) return {};
  const float quotient = largest / greatest;
  const float finite = quotient > std::numeric_limits<float>::max() ? 0x1p127F : quotient;
  const auto power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(finite) & 0xFF800000U);
  return {power, 1 / power, 0};
}
constexpr float power_of_exponent(std::uint8_t exponent) {
  return std::bit_cast<float>(exponent == 0 ? 0x00400000U : std::uint32_t(exponent) << 23);
}
constexpr BlockScale exponent_of_block(float greatest, float largest) {
  const auto bits = std::bit_cast<std::uint32_t>(greatest * (1 / largest));
  const std::uint32_t below = bits >> 23, rest = bits & 0x7FFFFFU;
  const bool up = rest > 0 && !(below == 0 && rest <= 0x400000U);
  const auto exponent = std::uint8_t(below + (up ? 1 : 0));
  return {power_of_exponent(std::uint8_t(254 - exponent)), power_of_exponent(exponent), exponent};
}

}  // namespace weft
