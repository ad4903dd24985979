// Moments of fewer bits than f32: what their codes stand for, and how they are rounded.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "weft/backend/cpu/reference/rows.h"
#include "weft/tensor/args.h"

namespace weft::reference {

/// What a type keeps of a float.
struct Grid {
  int dropped;     // bits of its mantissa that do not fit
  float smallest;  // below it numbers are as far apart as above; 0: never
  float largest;
};
inline Grid grid_of(Dtype dtype) {
  if (dtype == Dtype::f8e5m2) return {21, 0x1p-14F, 57344.0F};
  if (dtype == Dtype::f16) return {13, 0x1p-14F, 65504.0F};
  return {16, 0, std::bit_cast<float>(0x7f7f0000U)};
}

/// Up or down, the nearer the more often. Which of them follows from x and the dice alone: no layout shows.
inline float by_chance(float x, Grid grid, std::uint32_t dice) {
  std::uint32_t h = (std::bit_cast<std::uint32_t>(x) ^ dice) * 0x85ebca6bU;
  h = (h ^ (h >> 15)) * 0xc2b2ae35U;
  h ^= h >> 13;
  const float size = std::min(std::abs(x), grid.largest);
  const float shift = size < grid.smallest ? grid.smallest : 0.0F;
  const auto bits = std::bit_cast<std::uint32_t>(size + shift) + (h >> (32 - grid.dropped));
  const auto kept = std::bit_cast<float>(bits >> grid.dropped << grid.dropped);
  return std::copysign(kept - shift, x);
}

enum class Moment : std::uint8_t { first, second };

inline bool as_root(Dtype dtype, Moment which) { return which == Moment::second && moment_scale(dtype) != 1; }
inline std::vector<double> load_moment(const Tensor& from, Moment which) {
  std::vector<double> out = load(from);
  for (double& x : out) {
    x /= double(moment_scale(from.dtype()));
    if (as_root(from.dtype(), which)) x *= x;
  }
  return out;
}
inline void store_moment(const Tensor& to, Moment which, std::vector<double> values, std::uint32_t dice) {
  if (to.dtype() != Dtype::f32)
    for (double& x : values) {
      if (as_root(to.dtype(), which)) x = std::sqrt(x);
      x = double(by_chance(float(x) * moment_scale(to.dtype()), grid_of(to.dtype()), dice));
    }
  store(to, values);
}

}  // namespace weft::reference
