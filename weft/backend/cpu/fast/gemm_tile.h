// Products of small panels, held in registers: c (+)= a b for tiles of a few rows by a few registers. Every
// element of c is one chain of additions in ascending depth, whatever the tile, so no bit depends on how a
// product is cut in rows or columns. For sources of loops/ only.
#pragma once

#include <arithmetic.h>
#include <native.h>

#include <cstdint>

namespace weft::fast::WEFT_ISA {

/// Sums that a tile keeps in registers: of 32 registers 24, of 16 12.
inline constexpr int tile_sums = width == 16 ? 24 : 12;
inline constexpr int tile_columns = width == 16 ? 4 : 3;
/// Rows that any tile may read and write beyond the last one asked for.
inline constexpr int tile_slack = 24;

/// Element (i, k) of a.
struct ByRows {  // rows of depth
  const float* at;
  std::int64_t step;
  [[gnu::always_inline]] ByRows from(std::int64_t i) const { return {at + i * step, step}; }
  [[gnu::always_inline]] float get(int i, std::int64_t k) const { return at[i * step + k]; }
};
struct ByColumns {  // rows side by side
  const float* at;
  std::int64_t step;
  [[gnu::always_inline]] ByColumns from(std::int64_t i) const { return {at + i, step}; }
  [[gnu::always_inline]] float get(int i, std::int64_t k) const { return at[i + k * step]; }
};

/// What c's sums start from: nothing, c, or c times a factor of its row.
enum class Start : std::uint8_t { zero, more, scaled };

struct Panel {
  const float* at;
  std::int64_t step;  // between rows of depth; rows lie on register borders
};
struct Target {
  float* at;
  std::int64_t step;
  const float* factor = nullptr;  // of each row, for Start::scaled
};

/// Rows that will be read next, pages apart, where the processor's own prefetching ends. A product asks for a
/// few of them at every tile: asked for all at once they would hold up the loads behind them.
struct Fetch {
  struct From {
    const char* at;
    std::int64_t step;     // bytes
    std::int64_t lines;    // of each row
    std::int64_t left;     // rows
    std::int64_t at_once;  // rows at every tile
  };
  From from[3];
  int count = 0;

  void some() {
    for (int i = 0; i < count; ++i) {
      From& here = from[i];
      for (std::int64_t n = here.at_once; n > 0 && here.left > 0; --n, --here.left, here.at += here.step)
        for (std::int64_t line = 0; line < here.lines; ++line) __builtin_prefetch(here.at + line * 64, 0, 2);
    }
  }
};

template <int... I>
struct Numbers {};
template <int n, int... I>
struct UpTo : UpTo<n - 1, n - 1, I...> {};
template <int... I>
struct UpTo<0, I...> {
  using List = Numbers<I...>;
};

/// A register's floats where any float may lie.
using Anywhere [[gnu::aligned(4), gnu::may_alias]] = Floats;
[[gnu::always_inline]] inline Floats read(const float* from) {
  // Copied as bytes, sums that start from memory would stay in memory: g++ 12 loads and stores each twice
  // more.
  return *reinterpret_cast<const Anywhere*>(from);
}
[[gnu::always_inline]] inline void write(float* to, Floats x) { *reinterpret_cast<Anywhere*>(to) = x; }

/// One tile of `rows` by `columns` registers. All indices are constants, so that the sums stay in registers.
template <int rows, int columns, Start start, class A>
struct Tile {
  Floats sum[rows * columns];

  template <int i, int... J>
  [[gnu::always_inline]] void begin_row(const Target& c, Numbers<J...>) {
    if constexpr (start == Start::zero) {
      ((sum[i * columns + J] = Floats{}), ...);
    } else if constexpr (start == Start::more) {
      ((sum[i * columns + J] = read(c.at + i * c.step + J * width)), ...);
    } else {
      const Floats factor = c.factor[i] - Floats{};
      ((sum[i * columns + J] = read(c.at + i * c.step + J * width) * factor), ...);
    }
  }
  template <int i, int... J>
  [[gnu::always_inline]] void end_row(const Target& c, Numbers<J...>) {
    (write(c.at + i * c.step + J * width, sum[i * columns + J]), ...);
  }
  template <int i, int... J>
  [[gnu::always_inline]] void add_row(float x, const Floats* b, Numbers<J...>) {
    const Floats all = x - Floats{};  // x + 0 would be an addition: it is not -0 where x is
    ((sum[i * columns + J] = added_product(all, b[J], sum[i * columns + J])), ...);
  }
  template <int... I, int... J>
  [[gnu::always_inline]] void step(const A& a, const float* b, std::int64_t k, Numbers<I...>, Numbers<J...>) {
    const Floats panel[columns] = {read(b + J * width)...};
    (add_row<I>(a.get(I, k), panel, Numbers<J...>{}), ...);
  }
  template <int... I>
  [[gnu::always_inline]] void run(const Target& c, const A& a, const Panel& b, std::int64_t depth,
                                  Numbers<I...> all) {
    using Columns = typename UpTo<columns>::List;
    (begin_row<I>(c, Columns{}), ...);
    for (std::int64_t k = 0; k < depth; ++k) step(a, b.at + k * b.step, k, all, Columns{});
    (end_row<I>(c, Columns{}), ...);
  }
};

/// A square of registers, turned about its diagonal: at distance 1, 2, 4, … two rows exchange halves.
struct Square {
  Floats row[width];

  template <int h, int... L>
  [[gnu::always_inline]] static void exchange(Floats& a, Floats& b, Numbers<L...>) {
    const Floats upper = __builtin_shufflevector(a, b, ((L & h) != 0 ? width + L - h : L)...);
    b = __builtin_shufflevector(a, b, ((L & h) != 0 ? width + L : L + h)...);
    a = upper;
  }
  template <int h, int... P>
  [[gnu::always_inline]] void exchange_all(Numbers<P...>) {
    using Lane = typename UpTo<width>::List;
    (exchange<h>(row[P / h * 2 * h + P % h], row[P / h * 2 * h + P % h + h], Lane{}), ...);
  }
  [[gnu::always_inline]] void turn() {
    using Pairs = typename UpTo<width / 2>::List;
    exchange_all<1>(Pairs{});
    exchange_all<2>(Pairs{});
    if constexpr (width > 4) exchange_all<4>(Pairs{});
    if constexpr (width > 8) exchange_all<8>(Pairs{});
  }
  template <int... I>
  [[gnu::always_inline]] void run(float* to, std::int64_t to_step, const float* from, std::int64_t from_step,
                                  Numbers<I...>) {
    ((row[I] = read(from + I * from_step)), ...);
    turn();
    (write(to + I * to_step, row[I]), ...);
  }
};
inline void transpose_square(float* to, std::int64_t to_step, const float* from, std::int64_t from_step) {
  Square square;
  square.run(to, to_step, from, from_step, typename UpTo<width>::List{});
}

/// Columns of one tile's width, all rows (rounded up to tiles).
template <int columns, Start start, class A>
[[gnu::noinline]] void column_of_tiles(Target c, std::int64_t rows, A a, Panel b, std::int64_t depth,
                                       Fetch* fetch) {
  constexpr int step = tile_sums / columns;
  for (std::int64_t i = 0; i < rows; i += step) {
    if (fetch != nullptr) fetch->some();
    Tile<step, columns, start, A> tile;
    const Target here = {c.at + i * c.step, c.step, c.factor + (start == Start::scaled ? i : 0)};
    tile.run(here, a.from(i), b, depth, typename UpTo<step>::List{});
  }
}

/// c [rows, registers * width] (+)= a [rows, depth] b. Up to tile_slack rows beyond `rows` are read and
/// written.
template <Start start, class A>
void multiply(Target c, std::int64_t rows, std::int64_t registers, A a, Panel b, std::int64_t depth,
              Fetch* fetch = nullptr) {
  std::int64_t left = registers;
  while (left > 0) {
    const std::int64_t now = left < tile_columns ? left : tile_columns;
    if (now == 1) column_of_tiles<1, start>(c, rows, a, b, depth, fetch);
    if (now == 2) column_of_tiles<2, start>(c, rows, a, b, depth, fetch);
    if (now == 3) column_of_tiles<3, start>(c, rows, a, b, depth, fetch);
    if constexpr (tile_columns > 3) {
      if (now == 4) column_of_tiles<4, start>(c, rows, a, b, depth, fetch);
    }
    c.at += now * width;
    b.at += now * width;
    left -= now;
  }
}

}  // namespace weft::fast::WEFT_ISA
