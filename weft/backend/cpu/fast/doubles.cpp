// Tiles of the result are added up in double, stretch of k after stretch, from copies that were widened.
#include "weft/backend/cpu/fast/doubles.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/backend/cpu/fast/parallel.h"

namespace weft::fast {
namespace {

constexpr std::int64_t tile_rows = 32, tile_columns = 128, tile_depth = 64;

/// A matrix as it is read: element (i, j) lies at i * row + j * column.
struct Operand {
  const std::byte* first;
  std::int64_t row, column;
  void (*widen)(double* to, const std::byte* from, std::int64_t step, std::int64_t count);
  std::int64_t size;

  /// Row i, columns [j, j + count).
  void row_of(double* to, std::int64_t i, std::int64_t j, std::int64_t count) const {
    widen(to, first + (i * row + j * column) * size, column, count);
  }
};

template <class T>
void widen_line(double* to, const std::byte* from, std::int64_t step, std::int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) to[i] = double(x[i * step]);
}

Operand operand(const Tensor& x, bool turned) {
  Operand out{static_cast<const std::byte*>(x.address()), x.stride(0), x.stride(1), nullptr,
              size_of(x.dtype())};
  if (turned) std::swap(out.row, out.column);
  if (x.dtype() == Dtype::f64)
    out.widen = widen_line<double>;
  else
    visit_float(x.dtype(), [&]<class T>() { out.widen = widen_line<T>; });
  return out;
}

/// One thread's room: a tile of the result, and a stretch of both operands.
struct TileRoom {
  std::vector<double> sums = std::vector<double>(tile_rows * tile_columns);
  std::vector<double> a = std::vector<double>(tile_rows * tile_depth);
  std::vector<double> b = std::vector<double>(tile_depth * tile_columns);
};

struct TileOfSums {
  std::int64_t row, rows, column, columns;
};

/// sums += columns [k, k + depth) of a times the same rows of b.
void add_stretch(TileRoom& room, const TileOfSums& t, std::int64_t depth) {
  for (std::int64_t i = 0; i < t.rows; ++i) {
    double* sums = &room.sums[std::size_t(i * tile_columns)];
    for (std::int64_t k = 0; k < depth; ++k) {
      const double factor = room.a[std::size_t(i * tile_depth + k)];
      const double* b = &room.b[std::size_t(k * tile_columns)];
      for (std::int64_t j = 0; j < t.columns; ++j) sums[j] += factor * b[j];
    }
  }
}

void add_up(TileRoom& room, const TileOfSums& t, const Operand& a, const Operand& b, std::int64_t all) {
  std::ranges::fill(room.sums, 0.0);
  for (std::int64_t k = 0; k < all; k += tile_depth) {
    const std::int64_t depth = std::min(tile_depth, all - k);
    for (std::int64_t i = 0; i < t.rows; ++i)
      a.row_of(&room.a[std::size_t(i * tile_depth)], t.row + i, k, depth);
    for (std::int64_t i = 0; i < depth; ++i)
      b.row_of(&room.b[std::size_t(i * tile_columns)], k + i, t.column, t.columns);
    add_stretch(room, t, depth);
  }
}

/// A tile's sums, with what was there and the bias, rounded once.
template <class T>
void store_sums(const TileRoom& room, const TileOfSums& t, const Tensor& out, const double* bias,
                bool accumulate) {
  for (std::int64_t i = 0; i < t.rows; ++i) {
    T* to = out.data<T>() + (t.row + i) * out.stride(0) + t.column;
    for (std::int64_t j = 0; j < t.columns; ++j) {
      const double before = accumulate ? double(to[j]) : 0, more = bias ? bias[t.column + j] : 0;
      to[j] = T(room.sums[std::size_t(i * tile_columns + j)] + (before + more));
    }
  }
}

}  // namespace

bool in_doubles(const Tensor& out, const Tensor& a, const Tensor& b) {
  return out.dtype() == Dtype::f64 || a.dtype() == Dtype::f64 || b.dtype() == Dtype::f64;
}

void product_in_doubles(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                        int threads) {
  const std::int64_t m = out.dim(0), n = out.dim(1), depth = a.dim(how.a == Read::as_is ? 1 : 0);
  const Operand left = operand(a, how.a == Read::transposed), right = operand(b, how.b == Read::transposed);
  std::vector<double> bias(how.bias ? std::size_t(n) : 0);
  if (how.bias) {
    operand(how.bias.split(0, {1, n}), false).row_of(bias.data(), 0, 0, n);
  }
  const std::int64_t down = (m + tile_rows - 1) / tile_rows, across = (n + tile_columns - 1) / tile_columns;
  in_parallel(threads, down * across, 2 * m * n * depth, [&](std::int64_t first, std::int64_t last) {
    TileRoom room;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row = i / across * tile_rows, column = i % across * tile_columns;
      const TileOfSums tile{row, std::min(tile_rows, m - row), column, std::min(tile_columns, n - column)};
      add_up(room, tile, left, right, depth);
      const double* more = bias.empty() ? nullptr : bias.data();
      if (out.dtype() == Dtype::f64)
        store_sums<double>(room, tile, out, more, how.accumulate);
      else
        store_sums<float>(room, tile, out, more, how.accumulate);
    }
  });
}

}  // namespace weft::fast
