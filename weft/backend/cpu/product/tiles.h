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

/// Rows and columns of a tile: 576 KiB of sums, which stay in a core's second-level cache.
inline constexpr std::int64_t most_of_a_tile = 384;

/// Tiles that cover m rows and n columns once, of at most `most`, and as many as `threads` finish together.
/// At least two in a row where there are four columns or more, and then none of one row or column unless the
/// result is.
std::vector<Tile> tiles(std::int64_t m, std::int64_t n, int threads, std::int64_t most = most_of_a_tile);

/// A tile of a product as a product of its own.
Problem part(Problem whole, const Tile& tile);

}  // namespace weft::product
