// Which numbers a setting takes: declared beside the setting, checked wherever a value comes from.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace weft {

/// An interval of finite numbers. NaN and the infinities are in none.
struct Legal {
  double least = -std::numeric_limits<double>::max(), most = std::numeric_limits<double>::max();
  bool above = false, below = false;  // the end itself is not legal

  constexpr bool holds(double x) const {
    return (above ? x > least : x >= least) && (below ? x < most : x <= most);
  }
};

/// "of 1 or more", "above 0", "from 0 to 1", "from 0 to below 1"; nothing where every number is legal.
std::string words(const Legal&);

namespace legal {
/// As large as a size, a number of layers or ranks, or an interval of steps may be: more cannot be meant.
inline constexpr double size_limit = 2147483647;
/// Samples and tokens: a quadrillion, so that products with a size still fit into 63 bits.
inline constexpr double count_limit = 1e15;

constexpr Legal at_least(double least) { return {.least = least}; }
constexpr Legal above(double least) { return {.least = least, .above = true}; }
constexpr Legal from_to(double least, double most) { return {.least = least, .most = most}; }
inline constexpr Legal finite{};
inline constexpr Legal size = from_to(1, size_limit);
/// Zero stands for "as the others say" or "never".
inline constexpr Legal size_or_none = from_to(0, size_limit);
inline constexpr Legal count = from_to(0, count_limit);
inline constexpr Legal not_negative = at_least(0);
inline constexpr Legal positive = above(0);
inline constexpr Legal fraction{.least = 0, .most = 1};
inline constexpr Legal below_one{.least = 0, .most = 1, .below = true};
/// A learning rate or a weight decay: what is larger makes every weight infinite at once.
inline constexpr Legal rate = from_to(0, 1e6);
/// Ranks along one axis.
inline constexpr Legal degree = from_to(1, 65536);
}  // namespace legal

}  // namespace weft
