// How a number becomes one of eight bits under a scale: the same on every device, to the bit.
#pragma once

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

}  // namespace weft
