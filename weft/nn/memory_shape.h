// The sizes of a layer that remembers: of a whole one, or of what a rank holds of it.
#pragma once

#include <cstdint>

namespace weft {

struct MemoryShape {
  std::int64_t keys = 1;      // key heads; where ranks trade them, those that are walked over here
  std::int64_t per_key = 1;   // value heads that one serves
  std::int64_t channels = 1;  // of a query and a key
  std::int64_t value = 1;     // of a value
  std::int64_t numbers = 2;   // that a value head has of a step beside its values
  /// Of a key head, its values; what filters read; and what the first product makes.
  std::int64_t values() const { return per_key * value; }
  std::int64_t filtered() const { return 2 * channels + values(); }
  std::int64_t width() const { return filtered() + values() + numbers * per_key; }
};

}  // namespace weft
