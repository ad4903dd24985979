// Which elements of a block a rank updates.
#pragma once

#include <cstdint>

namespace weft {

/// Elements that this rank updates. Borders between ranks ignore borders of parameters.
struct OwnedPart {
  std::int64_t at = 0;    // in the block
  std::int64_t kept = 0;  // in memory that holds owned elements only
  std::int64_t count = 0;
};

}  // namespace weft
