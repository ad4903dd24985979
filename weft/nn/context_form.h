// How ranks that share a sequence reach each other's keys and values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

/// Handed round while one computes; all fetched at once; or traded for heads, so that each rank has whole
/// sequences of fewer heads. On two levels, neighbours trade heads for their common part of the sequence, and
/// rings go through those who have the same heads.
enum class ContextForm : std::uint8_t { ring, gather, heads, two_levels };
constexpr std::array<std::string_view, 4> words(ContextForm) {
  return {"ring", "gather", "heads", "two_levels"};
}

}  // namespace weft
