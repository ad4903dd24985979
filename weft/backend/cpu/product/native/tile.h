// A tile of six rows stays in registers while k goes by; and where rows of a matrix lie. For sources of this
// folder only.
#pragma once

#include <algorithm>

#include <arithmetic.h>

#include "weft/backend/cpu/fast/lanes.h"
#include "weft/backend/cpu/product/loops.h"

namespace weft::product::WEFT_ISA {

using namespace fast::WEFT_ISA;
using fast::In;
using fast::Out;
using fast::Type;

/// Registers in a row of the tile: as many as leave room for six rows of them.
inline constexpr int most = width == 16 ? 4 : 2;

/// Not 0 + x, which would turn -0 into 0 and cost an addition.
[[gnu::always_inline]] inline Floats all_of(float x) { return x - Floats{}; }

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
inline constexpr std::int64_t pace = 2;  // k of a tile for a line; one for each would fill the core's buffers

/// Rows where they lie: each is a stream of its own, and of a new one the processor does not know yet.
inline Ahead rows_of(const Stripe& s, const float* a, std::int64_t rows) {
  return a ? six_ahead(a, s.row, rows, s.k) : Ahead{};
}

/// What a tile reads, and where it leaves what it has read of the second operand.
struct Source {
  const float *a, *b;
  std::int64_t a_row, b_row;
  float* copy;
};

/// `Terms` say what a word of an operand is: how one of the first operand meets a register of the second.
template <class Terms, int rows, int registers, bool in_sixes, bool copies>
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
      const Floats left = Terms::spread(element<in_sixes>(from.a, from.a_row, i, k));
      for (int j = 0; j < registers; ++j) sum[i][j] = Terms::add(left, right[j], sum[i][j]);
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
template <class Terms, int rows, int registers, bool in_sixes, bool copies = false>
[[gnu::noinline]] void tile(const Stripe& s, std::int64_t i, std::int64_t j, TileFetch& asked) {
  const Source from{.a = s.a + i / six * s.next_six,
                    .b = (s.copy && !copies ? s.copy : s.b) + j,
                    .a_row = s.row,
                    .b_row = copies ? s.b_row : panel,
                    .copy = copies ? s.copy + j : nullptr};
  float* c = s.c + i * s.c_row + j;
  for (int row = 0; row < rows; ++row)
    for (int at = 0; at < registers; ++at) __builtin_prefetch(c + row * s.c_row + at * width, 1);
  Tile<Terms, rows, registers, in_sixes, copies> sums;
  sums.add_all(from, s.k, asked);
  sums.store(s, c, s.bias ? s.bias + j : nullptr);
}

/// The rows after those from i on, or where they go on with the next part of k.
inline Ahead following(const Stripe& s, std::int64_t i) {
  if (i + six < s.rows) return rows_of(s, s.a + (i / six + 1) * s.next_six, s.rows - i - six);
  return rows_of(s, s.next_a, s.rows);
}

template <class Terms, int registers, bool in_sixes>
void column(const Stripe& s, std::int64_t j, TileFetch& asked) {
  for (std::int64_t i = 0; i < s.rows; i += six) {
    if (!in_sixes && s.fresh && j == 0) asked.rows = Cursor(following(s, i));
    if (i == 0 && s.copy) {
      tile<Terms, six, registers, in_sixes, true>(s, i, j, asked);
      continue;
    }
    switch (s.rows - i) {
      case 1:
        tile<Terms, 1, registers, in_sixes>(s, i, j, asked);
        break;
      case 2:
        tile<Terms, 2, registers, in_sixes>(s, i, j, asked);
        break;
      case 3:
        tile<Terms, 3, registers, in_sixes>(s, i, j, asked);
        break;
      case 4:
        tile<Terms, 4, registers, in_sixes>(s, i, j, asked);
        break;
      case 5:
        tile<Terms, 5, registers, in_sixes>(s, i, j, asked);
        break;
      default:
        tile<Terms, six, registers, in_sixes>(s, i, j, asked);
        break;
    }
  }
}

template <class Terms, bool in_sixes>
void multiply_rows(const Stripe& s) {
  TileFetch asked{Cursor(Ahead{}), Cursor(s.ahead)};
  std::int64_t from = 0;
  for (; from + most * width <= s.columns; from += most * width)
    column<Terms, most, in_sixes>(s, from, asked);
  if constexpr (most * width > lanes) {
    if (s.columns - from == 3 * lanes) column<Terms, 3, in_sixes>(s, from, asked);
    if (s.columns - from == 2 * lanes) column<Terms, 2, in_sixes>(s, from, asked);
    if (s.columns - from == lanes) column<Terms, 1, in_sixes>(s, from, asked);
  }
}

template <class Terms>
void multiply_as(const Stripe& s) {
  if (s.row == 1)
    multiply_rows<Terms, true>(s);
  else
    multiply_rows<Terms, false>(s);
}

[[gnu::always_inline]] inline In part(Matrix m, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * m.row + column;
  return {static_cast<const char*>(m.from) + at * size_of(m.type), m.type};
}

/// A row of a few lines is too short for the processor to see what follows it: a later row is asked for.
[[gnu::always_inline]] inline void ask_for(Matrix m, std::int64_t row, std::int64_t columns) {
  const char* next = static_cast<const char*>(part(m, row, 0).from);
  for (std::int64_t j = 0; j < columns * size_of(m.type); j += 64) __builtin_prefetch(next + j);
}
inline constexpr std::int64_t ahead = 16;  // rows

}  // namespace weft::product::WEFT_ISA
