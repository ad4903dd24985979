// Elements of a list that lie next to each other.
#pragma once

#include <cstdint>

namespace weft {

/// [begin, end)
struct Range {
  std::int64_t begin, end;
  constexpr std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

}  // namespace weft
