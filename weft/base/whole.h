// Whole numbers that are stored as numbers with a fraction.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace weft {

/// The whole number that it is. None: it has a fraction, is no number, or is beyond those of which doubles
/// hold every one.
inline std::optional<std::int64_t> whole_number(double x) {
  constexpr double most = 9007199254740992;
  const bool whole = std::abs(x) <= most && x == std::floor(x);  // which no NaN is
  return whole ? std::optional(std::int64_t(x)) : std::nullopt;
}

}  // namespace weft
