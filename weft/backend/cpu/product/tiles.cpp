// Few sizes of tiles: an engine makes something for each.
#include "weft/backend/cpu/product/tiles.h"

#include <algorithm>
#include <limits>

namespace weft::product {
namespace {

constexpr std::int64_t copying = 64;  // an operand costs as much to copy as so many more rows or columns
constexpr std::int64_t line = 32;     // elements of a cache's line, of the smallest type

std::int64_t divide(std::int64_t a, std::int64_t by) { return (a + by - 1) / by; }

struct Grid {
  std::int64_t rows, columns;
};

/// How many pieces of a side are none too small, wherever lines of a cache end (edge below).
std::int64_t most_pieces(std::int64_t side, const TileRule& rule) {
  const std::int64_t lost = rule.least > line ? line - 1 : 0;
  return std::max(side / (rule.least + lost), std::int64_t{1});
}

/// The coarsest grid that will do.
Grid least_grid(std::int64_t m, std::int64_t n, const TileRule& rule) {
  const Grid finest{most_pieces(m, rule), most_pieces(n, rule)};
  Grid g{divide(m, rule.most), std::max(divide(n, rule.most), std::min(finest.columns, std::int64_t{2}))};
  while (g.rows * g.columns < rule.threads && std::max(m / g.rows, n / g.columns) > copying) {
    const bool rows_are_longer = m / g.rows > n / g.columns;
    if (rows_are_longer ? g.rows >= finest.rows : g.columns >= finest.columns) break;
    ++(rows_are_longer ? g.rows : g.columns);
  }
  return g;
}

/// Time of the thread that works longest.
std::int64_t cost(std::int64_t m, std::int64_t n, Grid g, int threads) {
  return divide(g.rows * g.columns, threads) * (m / g.rows + copying) * (n / g.columns + copying);
}

/// A little finer, where threads then have equal shares.
Grid best_grid(std::int64_t m, std::int64_t n, const TileRule& rule) {
  const Grid least = least_grid(m, n, rule);
  Grid best = least;
  for (std::int64_t rows = 0; rows < 3; ++rows)
    for (std::int64_t columns = 0; columns < 3; ++columns) {
      const Grid g{least.rows + rows, least.columns + columns};
      if (rows > 0 && g.rows > most_pieces(m, rule)) continue;
      if (columns > 0 && g.columns > most_pieces(n, rule)) continue;
      if (cost(m, n, g, rule.threads) < cost(m, n, best, rule.threads)) best = g;
    }
  return best;
}

/// Where one of so many even pieces begins: at whole lines of a cache, where pieces are long.
std::int64_t edge(std::int64_t whole, std::int64_t pieces, std::int64_t i) {
  const std::int64_t unit = whole >= 2 * line * pieces ? line : 1;
  return i == pieces ? whole : whole * i / pieces / unit * unit;
}

}  // namespace

std::vector<Tile> tiles(std::int64_t m, std::int64_t n, const TileRule& rule) {
  const auto [rows, columns] = best_grid(m, n, rule);
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
