// How documents are shared out between training, validation and test: "969, 30, 1".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/range.h"

namespace weft::data {

enum class Split { train, valid, test };
inline constexpr std::array<Split, 3> splits = {Split::train, Split::valid, Split::test};
std::string_view name(Split split);

/// A part of a whole, in [0, 1].
struct Portion {
  double begin, end;
};
using SplitMatrix = std::array<std::optional<Portion>, 3>;  // nothing: that split has no documents

/// The three weights, normalized as NumPy does it. Any characters but digits and points separate them.
std::array<double, 3> split_weights(std::string_view text);
SplitMatrix split_matrix(const std::array<double, 3>& weights);
SplitMatrix split_matrix(std::string_view text);

/// The elements that are a portion of `count`; both ends are rounded half to even.
Range range_of(const Portion& portion, std::int64_t count);

}  // namespace weft::data
