// What an element's address has room for where attention drops some of its probabilities.
#pragma once

#include <cstdint>

namespace weft::ops {

inline constexpr std::int64_t most_dropout_positions = std::int64_t{1} << 20;
inline constexpr std::int64_t most_dropout_heads = std::int64_t{1} << 23;

}  // namespace weft::ops
