// Words and numbers for people: joining, splitting, sizes as "1.3 GiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"

namespace weft {

/// join({1, 2, 3}, ", ") is "1, 2, 3"; takes any range of printable things.
template <class Range>
std::string join(const Range& parts, std::string_view between) {
  std::string out;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) out += between;
    first = false;
    out += text(part);
  }
  return out;
}

/// The fields between marks, empty ones too: split("a,,b", ',') is {"a", "", "b"}. The views point into
/// `line`.
std::vector<std::string_view> split(std::string_view line, char mark);

/// Without the spaces, tabs and line ends around it.
std::string_view trim(std::string_view line);

std::string lower(std::string_view ascii);

/// "0 B", "999 B", "1.3 GiB": three digits at most before the point, one after it.
std::string human_bytes(std::int64_t bytes);

/// "950", "12.3 k", "2.1 G": for parameters and tokens.
std::string human_count(double count);

/// "85 ms", "12.3 s", "4 min 05 s", "3 h 20 min", "2 d 04 h".
std::string human_duration(double seconds);

}  // namespace weft
