// Few sizes of tiles: an engine makes something for each.
#include "weft/backend/cpu/product/tiles.h"

#include <algorithm>
#include <limits>

namespace weft::product {
namespace {

constexpr std::int64_t copying = 64;  // an operand costs as much to copy as so many more rows or columns

std::int64_t divide(std::int64_t a, std::int64_t by) { return (a + by - 1) / by; }

struct Grid {
  std::int64_t rows, columns;
};

/// The coarsest grid that will do.
Grid least_grid(std::int64_t m, std::int64_t n, int threads, std::int64_t most) {
  Grid g{divide(m, most), std::max(divide(n, most), std::min(n / 2, std::int64_t{2}))};
  g.columns = std::max(g.columns, std::int64_t{1});
  while (g.rows * g.columns < threads && std::max(m / g.rows, n / g.columns) > copying)
    ++(m / g.rows > n / g.columns ? g.rows : g.columns);
  return g;
}

/// Time of the thread that works longest.
std::int64_t cost(std::int64_t m, std::int64_t n, Grid g, int threads) {
  return divide(g.rows * g.columns, threads) * (m / g.rows + copying) * (n / g.columns + copying);
}

/// A little finer, where threads then have equal shares.
Grid best_grid(std::int64_t m, std::int64_t n, int threads, std::int64_t most) {
  const Grid least = least_grid(m, n, threads, most);
  Grid best = least;
  for (std::int64_t rows = 0; rows < 3; ++rows)
    for (std::int64_t columns = 0; columns < 3; ++columns) {
      const Grid g{least.rows + rows, least.columns + columns};
      if ((rows > 0 && 2 * g.rows > m) || (columns > 0 && 2 * g.columns > n)) continue;
      if (cost(m, n, g, threads) < cost(m, n, best, threads)) best = g;
    }
  return best;
}

/// Where one of so many even pieces begins: at whole lines of a cache, where pieces are long.
std::int64_t edge(std::int64_t whole, std::int64_t pieces, std::int64_t i) {
  const std::int64_t unit = whole >= 64 * pieces ? 32 : 1;
  return i == pieces ? whole : whole * i / pieces / unit * unit;
}

}  // namespace

std::vector<Tile> tiles(std::int64_t m, std::int64_t n, int threads, std::int64_t most) {
  const auto [rows, columns] = best_grid(m, n, threads, most);
  std::vector<Tile> all;
  all.reserve(std::size_t(rows * columns));
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t i = edge(m, rows, row), j = edge(n, columns, column);
      all.push_back({i, edge(m, rows, row + 1) - i, j, edge(n, columns, column + 1) - j});
    }
  return all;
}

Problem part(Problem p, const Tile& tile) {
  const auto past = [](const void* from, std::int64_t elements, fast::Type type) {
    return from ? static_cast<const char*>(from) + elements * size_of(type) : nullptr;
  };
  p.m = tile.m;
  p.n = tile.n;
  p.a.from = past(p.a.from, tile.i * (p.a_turned ? 1 : p.a.row), p.a.type);
  p.b.from = past(p.b.from, tile.j * (p.b_turned ? p.b.row : 1), p.b.type);
  p.bias.from = past(p.bias.from, tile.j, p.bias.type);
  p.out.to = const_cast<char*>(past(p.out.to, tile.i * p.out_row + tile.j, p.out.type));
  return p;
}

}  // namespace weft::product
