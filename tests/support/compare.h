// How near two lists of numbers are, told by the first place where they are not near enough.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include "weft/base/error.h"
#include "weft/tensor/dtype.h"

namespace weft {

struct Tolerance {
  double relative = 0, absolute = 0;
};
inline constexpr Tolerance exactly{};

inline bool near(double found, double expected, Tolerance within) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (found == expected) return true;
  return std::abs(found - expected) <= within.absolute + within.relative * std::abs(expected);
}

/// "" where all are near; else where the first difference is, and how many there are.
inline std::string difference(std::span<const double> found, std::span<const double> expected,
                              Tolerance within) {
  if (found.size() != expected.size()) return text(found.size(), " elements, expected ", expected.size());
  std::string first;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (near(found[i], expected[i], within)) continue;
    if (wrong++ == 0) first = text("element ", i, " is ", found[i], ", expected ", expected[i]);
  }
  return wrong == 0 ? "" : text(first, " (", wrong, " of ", found.size(), " differ)");
}

/// What rounding to the nearest number of this type may change, relative to the number: half the distance of
/// neighbours just above 1.
constexpr double rounding(Dtype dtype) {
  return dtype == Dtype::bf16  ? 0x1p-8
         : dtype == Dtype::f16 ? 0x1p-11
         : dtype == Dtype::f64 ? 0x1p-53
                               : 0x1p-24;
}

}  // namespace weft
