// The product's inner loops over single numbers, and the copies that they read.
#include <algorithm>

#include "weft/backend/cpu/product/native/few.h"
#include "weft/backend/cpu/product/native/tile.h"
#include "weft/backend/cpu/product/native/turn.h"

namespace weft::product::WEFT_ISA {

namespace {

struct Singles {
  [[gnu::always_inline]] static Floats spread(const float* x) { return all_of(*x); }
  [[gnu::always_inline]] static Floats add(Floats left, Floats right, Floats sum) {
    // Named: a compiler left to fuse decides anew for each size of tile, and all must agree to the bit.
    return added_product(left, right, sum);
  }
};

void multiply(const Stripe& s) { multiply_as<Singles>(s); }

void multiply_few(const FewRows& f) {
  if (f.b.type == Type::f32)
    multiply_few_as<Singles, Whole32>(f);
  else if (f.b.type == Type::bf16)
    multiply_few_as<Singles, PairsOfBf16>(f);
  else
    multiply_few_as<Singles, Codes16>(f);
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

void panel_from_rows(float* to, Matrix b, std::int64_t k, std::int64_t columns) {
  for (std::int64_t i = 0; i < k; ++i) {
    ask_for(b, std::min(i + ahead, k - 1), columns);
    copy_64(to + i * panel, part(b, i, 0), columns);
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
const Loops loops = {multiply,  multiply_few, panel_from_rows, panel_from_columns, widen,
                     sixes,     load_tile,    store_tile,      load_turned,        store_turned,
                     fill_rows, add_tile,     add_bias};

}  // namespace weft::product::WEFT_ISA
