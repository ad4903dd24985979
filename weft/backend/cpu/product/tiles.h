// How a product is cut for an engine that multiplies each piece by one thread: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/backend/cpu/product/run.h"

namespace weft::product {

/// Rows [i, i + m) and columns [j, j + n) of a result.
struct Tile {
  std::int64_t i, m, j, n;
};

struct TileRule {
  int threads = 1;
  /// Rows and columns of a tile: 576 KiB of sums, which stay in a core's second-level cache.
  std::int64_t most = 384;
  std::int64_t least = 2;  // unless the result has fewer
};

/// Tiles that cover m rows and n columns once, and as many as the threads finish together. At least two in a
/// row where two are not too small.
std::vector<Tile> tiles(std::int64_t m, std::int64_t n, const TileRule& rule);

/// A tile of a product as a product of its own.
Problem part(Problem whole, const Tile& tile);

}  // namespace weft::product
