// The inner loops of our own matrix product, compiled once for each instruction set.
//
// Every element of the result is one chain of fused additions over k in ascending order, in parts of at most
// part_limit, and the parts are added in order: no tile, block or thread changes a bit.
#pragma once

#include <cstdint>

#include "weft/backend/cpu/fast/loops.h"

namespace weft::product {

/// Columns of the second operand that lie together, k by k: panel[k][64].
inline constexpr std::int64_t panel = 64;
/// Rows in a tile of a product that is computed as its transpose, at most.
inline constexpr std::int64_t turned_rows = 96;
/// Rows of the first operand that are multiplied together. Copied, they lie as [k][6].
inline constexpr std::int64_t six = 6;

struct Matrix {
  const void* from;
  fast::Type type;
  std::int64_t row;  // elements from one row to the next
};

/// Lines of memory that are read soon, asked for while something else is multiplied: so many at a distance
/// from each other, and that so many times.
struct Ahead {
  const void* from = nullptr;
  std::int64_t lines = 0, line = 0;      // bytes from one to the next
  std::int64_t strides = 0, stride = 0;  // bytes
};

inline constexpr std::int64_t line_bytes = 64;

/// So many k of the six rows of floats, or fewer, that begin there. Inlined, as each instruction set has its
/// own.
[[gnu::always_inline]] inline Ahead six_ahead(const void* from, std::int64_t row, std::int64_t rows,
                                              std::int64_t k) {
  constexpr std::int64_t size = sizeof(float);
  return {.from = from,
          .lines = rows < six ? rows : six,
          .line = row * size,
          .strides = k * size / line_bytes + 1,
          .stride = line_bytes};
}

/// c[rows, columns] (+)= a[rows, k] panel[k, columns] (+ bias): one panel, one part of k.
struct Stripe {
  const float* a;
  std::int64_t row;       // from one row of a to the next; 1 where rows lie in sixes
  std::int64_t next_six;  // from six rows to the next six
  const float* b;         // the panel; or, where copy is not null, its numbers where they lie:
  std::int64_t b_row;     // from one k to the next; the tiles of the first six rows copy them
  float* copy;            // there, and the others read that
  float* c;
  std::int64_t c_row;
  const float* bias;  // of this panel, or null
  std::int64_t k, rows;
  std::int64_t columns;  // a multiple of 16
  bool add;
  bool fresh;           // rows of a, where they lie, come into the caches here
  const float* next_a;  // six rows that follow the last, or null
  Ahead ahead;
};

/// Rows of the first operand that are few enough to keep a sum for each in a register.
inline constexpr std::int64_t most_few = 8;

/// out[rows, columns] (+)= a[rows, k] b[columns, k]^T (+ bias): few rows of a, and rows of b where they lie.
struct FewRows {
  const float* a;
  std::int64_t a_row;
  Matrix b;
  std::int64_t rows, columns;
  std::int64_t k, part;  // of k, at least least_few; and what is added up before it meets the rest
  fast::Out out;
  std::int64_t out_row;
  fast::In bias;  // where there is one
  bool has_bias, add;
};
/// What is read at once of a row of b may not reach behind the row.
inline constexpr std::int64_t least_few = 32;

struct Loops {
  void (*multiply)(const Stripe&);
  void (*multiply_few)(const FewRows&);
  /// panel[k][64] from k rows, or from the transposed of `columns` rows; zeros beyond the columns.
  void (*panel_from_rows)(float* to, Matrix b, std::int64_t k, std::int64_t columns);
  void (*panel_from_columns)(float* to, Matrix b, std::int64_t k, std::int64_t columns);
  /// [rows, k] as f32, row by row
  void (*widen)(float* to, Matrix a, std::int64_t rows, std::int64_t k);
  /// Sixes from the transposed of k rows.
  void (*sixes)(float* to, Matrix a, std::int64_t rows, std::int64_t k);
  /// tile[rows][64] from and to a matrix of any type.
  void (*load_tile)(float* tile, Matrix c, std::int64_t rows, std::int64_t columns);
  void (*store_tile)(fast::Out c, std::int64_t row, const float* tile, std::int64_t rows,
                     std::int64_t columns);
  /// The same from and to the transposed of a matrix of any type: `columns` rows of it.
  void (*load_turned)(float* tile, Matrix c, std::int64_t rows, std::int64_t columns);
  void (*store_turned)(fast::Out c, std::int64_t row, const float* tile, std::int64_t rows,
                       std::int64_t columns);
  /// Every row of the tile all its number of bias[rows].
  void (*fill_rows)(float* tile, const float* bias, std::int64_t rows);
  /// into += from; n a multiple of 16
  void (*add_tile)(float* into, const float* from, std::int64_t n);
  /// rows of tile += bias[64]
  void (*add_bias)(float* tile, const float* bias, std::int64_t rows);
};
const Loops& loops(fast::InstructionSet set);

/// The loops that differ where operands are words of two bf16, which follow each other in k. A matrix whose
/// rows are k's is bf16 still, and twice as far from one row of words to the next.
struct PairLoops {
  void (*multiply)(const Stripe&);
  void (*multiply_few)(const FewRows&);
  void (*panel_from_rows)(float* to, Matrix b, std::int64_t k, std::int64_t columns);
  void (*sixes)(float* to, Matrix a, std::int64_t rows, std::int64_t k);
};
/// Null where the set has no products of pairs.
const PairLoops* pair_loops(fast::InstructionSet set);

}  // namespace weft::product
