// Sums over ranks as balanced binary trees in rank order, in f32, rounded once: the same bits in every
// backend.
#pragma once

#include <cstdint>
#include <span>

#include "weft/comm/communicator.h"

namespace weft {

/// out = the reduction of parts[0], parts[1], … (each `count` elements of the type). The sum of ranks [a, b)
/// is that of [a, m) plus that of [m, b), m = a + (b - a + 1) / 2. out may be one or all of the parts.
struct Reduction {
  Dtype dtype;
  Reduce how;
  std::int64_t count;
};
void reduce_parts(const Reduction& what, std::span<void* const> outs, std::span<const void* const> parts);

}  // namespace weft
