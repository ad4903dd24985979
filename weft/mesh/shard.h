// Where a rank's block of memory sits in a tensor that nobody holds whole.
#pragma once

#include <cstdint>

#include "weft/tensor/shape.h"

namespace weft {

/// A box of a global tensor. Replica 0 writes it to files and is counted in norms.
struct Shard {
  Shape global, offset, local;
  int replica = 0;
  bool operator==(const Shard&) const = default;
};

/// A box, and where its elements start in the rank's own memory (counted in elements, row by row). A gated or
/// a query-key-value matrix that is cut over ranks is several boxes of its global tensor.
struct Piece {
  Shard where;
  std::int64_t at = 0;
  bool operator==(const Piece&) const = default;
};

}  // namespace weft
