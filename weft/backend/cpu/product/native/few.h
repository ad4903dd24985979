// Few rows times many that lie row by row: each of the many is read once, where it lies and as narrow as it
// is. Squares of them are turned in registers, so that a lane keeps one sum and adds to it in the order of k:
// the bits are those of a tile. For sources of this folder only.
#pragma once

#include <algorithm>

#include "weft/backend/cpu/product/native/tile.h"
#include "weft/backend/cpu/product/native/turn.h"

namespace weft::product::WEFT_ISA {

/// How numbers lie in a row of b: each lane of a register holds so many that follow each other, and
/// one(x, i) the i-th of each.
struct Whole32 {
  static constexpr int in_lane = 1, size = 4;
  [[gnu::always_inline]] static Floats numbers(const char* from) { return read<Floats>(from); }
  [[gnu::always_inline]] static Floats one(Floats x, int) { return x; }
};
/// Widened once they are turned.
struct PairsOfBf16 {
  static constexpr int in_lane = 2, size = 2;
  [[gnu::always_inline]] static Floats numbers(const char* from) { return read<Floats>(from); }
  [[gnu::always_inline]] static Floats one(Floats x, int i) {
    return (Floats)(i == 0 ? (Words)x << 16 : (Words)x & 0xffff0000U);
  }
};
struct Codes16 {
  static constexpr int in_lane = 1, size = 2;
  [[gnu::always_inline]] static Floats numbers(const char* from) { return widen_f16(read<Codes>(from)); }
  [[gnu::always_inline]] static Floats one(Floats x, int) { return x; }
};
template <class Stored>
inline constexpr int step_of = width* Stored::in_lane;

/// As many rows of b as a register has lanes; where there are fewer, the last stands for those behind it.
struct AllRows {
  const char* first;
  std::int64_t row;  // bytes
  [[gnu::always_inline]] const char* at(int i) const { return first + i * row; }
};
struct SomeRows {
  const char* first;
  std::int64_t row;
  std::int64_t last;
  [[gnu::always_inline]] const char* at(int i) const { return first + std::min<std::int64_t>(i, last) * row; }
};

/// The rows that follow, line by line, asked for while others are multiplied: rows are a page of memory or
/// so, too short for the processor to see what comes.
inline Cursor rows_behind(const char* last, std::int64_t row, std::int64_t bytes) {
  return Cursor({.from = last + row,
                 .lines = (bytes + line_bytes - 1) / line_bytes,
                 .line = line_bytes,
                 .strides = width,
                 .stride = row});
}

template <class Stored, class Rows>
[[gnu::always_inline]] inline void read_square(Floats (&square)[width], const Rows& b, std::int64_t k) {
  Rows from = b;
  from.first += k * Stored::size;
  for (int i = 0; i < width; ++i) square[i] = Stored::numbers(from.at(i));
  turn(square);
}

/// From one k to before another.
struct Ks {
  std::int64_t first, end;
};

/// Of what is read at k only some: where a part of k ends or begins within it.
template <class Terms, class Stored, int rows, class Rows>
[[gnu::noinline]] void add_some(const FewRows& f, const Rows& b, std::int64_t k, Ks some,
                                Floats (&sum)[rows]) {
  Floats square[width];
  read_square<Stored>(square, b, k);
  for (std::int64_t i = some.first; i < some.end; ++i) {
    const int at = int(i - k);
    const Floats right = Stored::one(square[at / Stored::in_lane], at % Stored::in_lane);
    for (int r = 0; r < rows; ++r) sum[r] = Terms::add(Terms::spread(f.a + r * f.a_row + i), right, sum[r]);
  }
}

template <class Terms, class Stored, int rows, class Rows>
[[gnu::always_inline]] inline void add_step(const FewRows& f, const Rows& b, std::int64_t k,
                                            Floats (&sum)[rows]) {
  Floats square[width];
  read_square<Stored>(square, b, k);
  const float* a = f.a + k;
  for (int i = 0; i < width; ++i, a += Stored::in_lane)
    for (int j = 0; j < Stored::in_lane; ++j) {
      const Floats right = Stored::one(square[i], j);
      for (int r = 0; r < rows; ++r) sum[r] = Terms::add(Terms::spread(a + r * f.a_row + j), right, sum[r]);
    }
}

/// In steps that begin where a multiple of one does: rows mostly begin with a line of memory. The last step
/// of a row ends with the row.
template <class Terms, class Stored, int rows, class Rows>
[[gnu::always_inline]] inline void add_part(const FewRows& f, const Rows& b, Ks part, Cursor& coming,
                                            Floats (&sum)[rows]) {
  constexpr std::int64_t step = step_of<Stored>;
  for (std::int64_t k = part.first; k < part.end;) {
    const std::int64_t at = std::min(k / step * step, f.k - step), to = std::min(at + step, part.end);
    for (int i = 0; i < width * step * Stored::size / line_bytes; ++i) coming.ask();
    if (at == k && to == k + step)
      add_step<Terms, Stored, rows>(f, b, k, sum);
    else
      add_some<Terms, Stored, rows>(f, b, at, {k, to}, sum);
    k = to;
  }
}

/// As many columns of the result as a register has lanes, into (or added to) a tile's.
template <class Terms, class Stored, int rows, class Rows>
[[gnu::noinline]] void few_columns(const FewRows& f, const Rows& b, float* tile, bool add) {
  Cursor coming = rows_behind(b.at(width - 1), b.row, f.k * Stored::size);
  for (std::int64_t k = 0; k < f.k; k += f.part) {
    Floats sum[rows] = {};
    add_part<Terms, Stored, rows>(f, b, {k, std::min(k + f.part, f.k)}, coming, sum);
    for (int r = 0; r < rows; ++r) {
      if (add) sum[r] = read<Floats>(tile + r * lanes) + sum[r];
      write(tile + r * lanes, sum[r]);
    }
    add = true;
  }
}

/// Of the result's row r, from column j on.
inline Out out_at(const FewRows& f, std::int64_t r, std::int64_t j) {
  return {static_cast<char*>(f.out.to) + (r * f.out_row + j) * size_of(f.out.type), f.out.type, false};
}

/// What is there before the first product.
inline void begin_few(const FewRows& f, std::int64_t j, std::int64_t count, float* tile) {
  const Matrix there = f.add ? Matrix{f.out.to, f.out.type, f.out_row} : Matrix{f.bias.from, f.bias.type, 0};
  for (std::int64_t r = 0; r < f.rows; ++r)
    each(count, [&](auto at) { store(tile + r * lanes, load(part(there, r, j), at)); });
}

/// Sixteen columns at a time, whatever the registers' width.
template <class Terms, class Stored, int rows>
void few_rows(const FewRows& f) {
  const bool begins = f.add || f.has_bias;
  const std::int64_t row = f.b.row * Stored::size;
  for (std::int64_t j = 0; j < f.columns; j += lanes) {
    const std::int64_t count = std::min<std::int64_t>(f.columns - j, lanes);
    float tile[rows * lanes] = {};
    if (begins) begin_few(f, j, count, tile);
    for (std::int64_t p = 0; p < count; p += width) {
      const char* first = static_cast<const char*>(f.b.from) + (j + p) * row;
      if (p + width <= count)
        few_columns<Terms, Stored, rows>(f, AllRows{first, row}, tile + p, begins);
      else
        few_columns<Terms, Stored, rows>(f, SomeRows{first, row, count - p - 1}, tile + p, begins);
    }
    for (int r = 0; r < rows; ++r)
      each(count, [&](auto at) { store(out_at(f, r, j), at, load(tile + r * lanes)); });
  }
}

template <class Terms, class Stored, int rows = 1>
void multiply_few_as(const FewRows& f) {
  if (f.rows == rows) return few_rows<Terms, Stored, rows>(f);
  if constexpr (rows < most_few) multiply_few_as<Terms, Stored, rows + 1>(f);
}

}  // namespace weft::product::WEFT_ISA
