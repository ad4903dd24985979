// The product's inner loops: a tile of six rows stays in registers while k goes by.
#include <algorithm>
#include <utility>

#include <arithmetic.h>

#include "weft/backend/cpu/fast/lanes.h"
#include "weft/backend/cpu/product/loops.h"

namespace weft::product::WEFT_ISA {

using namespace fast::WEFT_ISA;
using fast::In;
using fast::Out;
using fast::Type;

namespace {

/// Registers in a row of the tile: as many as leave room for six rows of them.
constexpr int most = width == 16 ? 4 : 2;

/// Not 0 + x, which would turn -0 into 0 and cost an addition.
[[gnu::always_inline]] inline Floats spread(float x) { return x - Floats{}; }

/// Where a(i, k) lies: sixes step by 1 and 6, rows by their length and 1.
template <bool in_sixes>
[[gnu::always_inline]] inline const float* element(const float* a, std::int64_t row, std::int64_t i,
                                                   std::int64_t k) {
  return in_sixes ? a + k * six + i : a + i * row + k;
}

/// How far a tile has come in asking.
struct Cursor {
  const char* at = nullptr;
  std::int64_t line = 0, lines = 0, lines_left = 0;
  std::int64_t jump = 0;  // from after the last line of a stride to the first of the next
  std::int64_t left = 0;  // lines of all

  explicit Cursor(const Ahead& what)
      : at(static_cast<const char*>(what.from)),
        line(what.line),
        lines(what.lines),
        lines_left(what.lines),
        jump(what.stride - what.lines * what.line),
        left(what.lines * what.strides) {}

  /// Into the second level: the first has no room for what is not used at once.
  [[gnu::always_inline]] void ask() {
    __builtin_prefetch(at, 0, 2);
    at += line;
    if (--lines_left == 0) {
      at += jump;
      lines_left = lines;
    }
  }
};

/// What a tile asks for while it multiplies: the rows that follow it, then what its stripe asks for.
struct TileFetch {
  Cursor rows, ahead;
};
constexpr std::int64_t pace = 2;  // k of a tile for a line; one for each would fill the core's buffers

/// Rows where they lie: each is a stream of its own, and of a new one the processor does not know yet.
Ahead rows_of(const Stripe& s, const float* a, std::int64_t rows) {
  return a ? six_ahead(a, s.row, rows, s.k) : Ahead{};
}

/// What a tile reads, and where it leaves what it has read of the second operand.
struct Source {
  const float *a, *b;
  std::int64_t a_row, b_row;
  float* copy;
};

template <int rows, int registers, bool in_sixes, bool copies>
struct Tile {
  Floats sum[rows][registers] = {};

  [[gnu::always_inline]] void add(const Source& from, std::int64_t k) {
    Floats right[registers];
    const float* b = from.b + k * from.b_row;
    for (int j = 0; j < registers; ++j) right[j] = read<Floats>(b + j * width);
    for (int j = 0; j < registers; ++j) __builtin_prefetch(b + 6 * from.b_row + j * width);
    if constexpr (copies)
      for (int j = 0; j < registers; ++j) write(from.copy + k * panel + j * width, right[j]);
    for (int i = 0; i < rows; ++i) {
      const Floats left = spread(*element<in_sixes>(from.a, from.a_row, i, k));
      // Named: a compiler left to fuse decides anew for each size of tile, and all must agree to the bit.
      for (int j = 0; j < registers; ++j) sum[i][j] = added_product(left, right[j], sum[i][j]);
    }
  }

  [[gnu::always_inline]] void add_all(const Source& from, std::int64_t depth, TileFetch& asked) {
    std::int64_t k = 0;
    if constexpr (rows == six)
      for (Cursor* kept : {&asked.rows, &asked.ahead}) {
        Cursor cursor = *kept;
        const std::int64_t asks = std::min(cursor.left, (depth - k) / pace);
        cursor.left -= asks;
        for (const std::int64_t end = k + asks * pace; k < end; k += pace) {
          cursor.ask();
          for (std::int64_t next = 0; next < pace; ++next) add(from, k + next);
        }
        *kept = cursor;
      }
    for (; k < depth; ++k) add(from, k);
  }

  [[gnu::always_inline]] void store(const Stripe& s, float* c, const float* bias) const {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < registers; ++j) {
        float* to = c + i * s.c_row + j * width;
        Floats x = sum[i][j];
        if (bias) x = x + read<Floats>(bias + j * width);
        if (s.add) x = read<Floats>(to) + x;
        write(to, x);
      }
    }
  }
};

/// Rows from i on, columns from j on.
template <int rows, int registers, bool in_sixes, bool copies = false>
[[gnu::noinline]] void tile(const Stripe& s, std::int64_t i, std::int64_t j, TileFetch& asked) {
  const Source from{.a = s.a + i / six * s.next_six,
                    .b = (s.copy && !copies ? s.copy : s.b) + j,
                    .a_row = s.row,
                    .b_row = copies ? s.b_row : panel,
                    .copy = copies ? s.copy + j : nullptr};
  float* c = s.c + i * s.c_row + j;
  for (int row = 0; row < rows; ++row)
    for (int at = 0; at < registers; ++at) __builtin_prefetch(c + row * s.c_row + at * width, 1);
  Tile<rows, registers, in_sixes, copies> sums;
  sums.add_all(from, s.k, asked);
  sums.store(s, c, s.bias ? s.bias + j : nullptr);
}

/// The rows after those from i on, or where they go on with the next part of k.
Ahead following(const Stripe& s, std::int64_t i) {
  if (i + six < s.rows) return rows_of(s, s.a + (i / six + 1) * s.next_six, s.rows - i - six);
  return rows_of(s, s.next_a, s.rows);
}

template <int registers, bool in_sixes>
void column(const Stripe& s, std::int64_t j, TileFetch& asked) {
  for (std::int64_t i = 0; i < s.rows; i += six) {
    if (!in_sixes && s.fresh && j == 0) asked.rows = Cursor(following(s, i));
    if (i == 0 && s.copy) {
      tile<six, registers, in_sixes, true>(s, i, j, asked);
      continue;
    }
    switch (s.rows - i) {
      case 1:
        tile<1, registers, in_sixes>(s, i, j, asked);
        break;
      case 2:
        tile<2, registers, in_sixes>(s, i, j, asked);
        break;
      case 3:
        tile<3, registers, in_sixes>(s, i, j, asked);
        break;
      case 4:
        tile<4, registers, in_sixes>(s, i, j, asked);
        break;
      case 5:
        tile<5, registers, in_sixes>(s, i, j, asked);
        break;
      default:
        tile<six, registers, in_sixes>(s, i, j, asked);
        break;
    }
  }
}

template <bool in_sixes>
void multiply_as(const Stripe& s) {
  TileFetch asked{Cursor(Ahead{}), Cursor(s.ahead)};
  std::int64_t from = 0;
  for (; from + most * width <= s.columns; from += most * width) column<most, in_sixes>(s, from, asked);
  if constexpr (most * width > lanes) {
    if (s.columns - from == 3 * lanes) column<3, in_sixes>(s, from, asked);
    if (s.columns - from == 2 * lanes) column<2, in_sixes>(s, from, asked);
    if (s.columns - from == lanes) column<1, in_sixes>(s, from, asked);
  }
}

void multiply(const Stripe& s) {
  if (s.row == 1)
    multiply_as<true>(s);
  else
    multiply_as<false>(s);
}

[[gnu::always_inline]] inline In part(Matrix m, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * m.row + column;
  return {static_cast<const char*>(m.from) + at * size_of(m.type), m.type};
}

/// A row of at most 64, zeros beyond.
[[gnu::always_inline]] inline void copy_64(float* to, In from, std::int64_t columns) {
  for (std::int64_t j = 0; j < panel; j += lanes) {
    if (j + lanes <= columns)
      store(to + j, load(from, Whole{j}));
    else if (j < columns)
      store(to + j, load(from, Tail{j, columns - j}));
    else
      store(to + j, all(0.0F));
  }
}

/// A row of a few lines is too short for the processor to see what follows it: a later row is asked for.
[[gnu::always_inline]] inline void ask_for(Matrix m, std::int64_t row, std::int64_t columns) {
  const char* next = static_cast<const char*>(part(m, row, 0).from);
  for (std::int64_t j = 0; j < columns * size_of(m.type); j += 64) __builtin_prefetch(next + j);
}
constexpr std::int64_t ahead = 16;  // rows

void panel_from_rows(float* to, Matrix b, std::int64_t k, std::int64_t columns) {
  for (std::int64_t i = 0; i < k; ++i) {
    ask_for(b, std::min(i + ahead, k - 1), columns);
    copy_64(to + i * panel, part(b, i, 0), columns);
  }
}

/// A register's first and second half of lanes, taken in turns from two registers.
template <int... i>
[[gnu::always_inline]] inline void weave(Floats& a, Floats& b, std::integer_sequence<int, i...>) {
  const Floats low = __builtin_shufflevector(a, b, (i / 2 + i % 2 * width)...);
  b = __builtin_shufflevector(a, b, (width / 2 + i / 2 + i % 2 * width)...);
  a = low;
}

/// Rows of a square become its columns: weaving row i with row i + width / 2 once for each bit of the index.
[[gnu::always_inline]] inline void turn(Floats (&square)[width]) {
  for (int bits = width; bits > 1; bits /= 2) {
    Floats next[width];
    for (int i = 0; i < width / 2; ++i) {
      next[2 * i] = square[i];
      next[2 * i + 1] = square[i + width / 2];
      weave(next[2 * i], next[2 * i + 1], std::make_integer_sequence<int, width>{});
    }
    for (int i = 0; i < width; ++i) square[i] = next[i];
  }
}

/// width rows of b, sixteen k of each, into the panel's columns from `column` on.
[[gnu::always_inline]] inline void turn_sixteen(float* to, Matrix b, std::int64_t column, std::int64_t k) {
  F rows[width];
  for (int i = 0; i < width; ++i) {
    rows[i] = load(part(b, column + i, k), Whole{0});
    __builtin_prefetch(part(b, column + i, k + 4 * lanes).from);
  }
  for (int p = 0; p < parts; ++p) {
    Floats square[width];
    for (int i = 0; i < width; ++i) square[i] = rows[i].part[p];
    turn(square);
    for (int i = 0; i < width; ++i) write(to + (k + p * width + i) * panel + column, square[i]);
  }
}

[[gnu::always_inline]] inline float one(In in) {
  if (in.type == Type::f32) return *static_cast<const float*>(in.from);
  if (in.type == Type::bf16) return *static_cast<const bf16*>(in.from);
  return *static_cast<const f16*>(in.from);
}

void panel_from_columns(float* to, Matrix b, std::int64_t k, std::int64_t columns) {
  const std::int64_t whole_k = k / lanes * lanes;
  const std::int64_t whole_columns = columns / width * width;
  // All columns of few k: what is written lies together, and what is read was asked for or is asked for here.
  for (std::int64_t i = 0; i < whole_k; i += lanes)
    for (std::int64_t j = 0; j < whole_columns; j += width) turn_sixteen(to, b, j, i);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = i < whole_k ? whole_columns : 0; j < columns; ++j)
      to[i * panel + j] = one(part(b, j, i));
    for (std::int64_t j = columns; j < panel; ++j) to[i * panel + j] = 0;
  }
}

void widen(float* to, Matrix a, std::int64_t rows, std::int64_t k) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const In from = part(a, i, 0);
    each(k, [&](auto at) { store(to + i * k, at, load(from, at)); });
  }
}

void sixes(float* to, Matrix a, std::int64_t rows, std::int64_t k) {
  const std::int64_t whole = rows / six * six;
  for (std::int64_t i = 0; i < k; ++i) {
    ask_for(a, std::min(i + ahead, k - 1), rows);
    std::int64_t m = 0;
    if (a.type == Type::f32) {
      const float* from = static_cast<const float*>(a.from) + i * a.row;
      for (; m < whole; m += six) __builtin_memcpy(to + m * k + i * six, from + m, six * sizeof(float));
    }
    for (; m < rows; ++m) to[m / six * six * k + i * six + m % six] = one(part(a, i, m));
  }
}

void load_tile(float* tile, Matrix c, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) copy_64(tile + i * panel, part(c, i, 0), columns);
}

void store_tile(Out c, std::int64_t row, const float* tile, std::int64_t rows, std::int64_t columns) {
  const std::int64_t size = size_of(c.type);
  for (std::int64_t i = 0; i < rows; ++i) {
    const Out to{static_cast<char*>(c.to) + i * row * size, c.type, false};
    each(columns, [&](auto at) { store(to, at, load(tile + i * panel, at)); });
  }
}

/// Rows of floats at a distance from each other.
template <class T>
struct Lined {
  T* at;
  std::int64_t row;
  T* operator()(std::int64_t i, std::int64_t j) const { return at + i * row + j; }
};

/// to(j, i) = from(i, j)
void transpose(Lined<float> to, Lined<const float> from, std::int64_t rows, std::int64_t columns) {
  const std::int64_t whole_rows = rows / width * width, whole_columns = columns / width * width;
  for (std::int64_t i = 0; i < whole_rows; i += width)
    for (std::int64_t j = 0; j < whole_columns; j += width) {
      Floats square[width];
      for (int p = 0; p < width; ++p) square[p] = read<Floats>(from(i + p, j));
      turn(square);
      for (int p = 0; p < width; ++p) write(to(j + p, i), square[p]);
    }
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) *to(j, i) = *from(i, j);
}

void load_turned(float* tile, Matrix c, std::int64_t rows, std::int64_t columns) {
  float turned[panel * turned_rows];
  for (std::int64_t j = 0; j < columns; ++j) {
    const In from = part(c, j, 0);
    each(rows, [&](auto at) { store(turned + j * turned_rows, at, load(from, at)); });
  }
  transpose({tile, panel}, {turned, turned_rows}, columns, rows);
}

void store_turned(Out c, std::int64_t row, const float* tile, std::int64_t rows, std::int64_t columns) {
  float turned[panel * turned_rows];
  transpose({turned, turned_rows}, {tile, panel}, rows, columns);
  const std::int64_t size = size_of(c.type);
  for (std::int64_t j = 0; j < columns; ++j) {
    const Out to{static_cast<char*>(c.to) + j * row * size, c.type, false};
    each(rows, [&](auto at) { store(to, at, load(turned + j * turned_rows, at)); });
  }
}

void fill_rows(float* tile, const float* bias, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < panel; j += lanes) store(tile + i * panel + j, all(bias[i]));
}

void add_tile(float* into, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes) store(into + i, load(into + i) + load(from + i));
}

void add_bias(float* tile, const float* bias, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < panel; j += lanes)
      store(tile + i * panel + j, load(tile + i * panel + j) + load(bias + j));
}

}  // namespace

extern const Loops loops;
const Loops loops = {multiply,   panel_from_rows, panel_from_columns, widen,     sixes,    load_tile,
                     store_tile, load_turned,     store_turned,       fill_rows, add_tile, add_bias};

}  // namespace weft::product::WEFT_ISA
