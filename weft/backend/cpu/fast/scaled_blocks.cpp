// Rounding to eight bits by blocks: bands of 128 rows, each block of which lies in one band, and of these
// sixteen rows at a time, so that what is turned is written sixteen codes at a time.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/parallel.h"
#include "weft/tensor/f8_blocks.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

/// Where codes and what they were multiplied by are written; without codes nothing is.
template <class F8>
struct Written {
  F8Grid grid;
  F8* codes;
  float* inverses;  // or
  std::uint8_t* exponents;

  BlockScale scale(std::int64_t row, std::int64_t column, float greatest) const {
    constexpr float largest = largest_of(dtype_of<F8>);
    const BlockScale out =
        exponents ? exponent_of_block(greatest, largest) : scale_of_block(greatest, largest);
    const std::int64_t at = grid.place(row, column);
    if (exponents)
      exponents[at] = out.exponent;
    else
      inverses[at] = out.inverse;
    return out;
  }
};

template <class F8>
Written<F8> written(const Tensor& codes, const Tensor& inverses, F8Blocks blocks) {
  if (!codes) return {};
  const bool in_exponents = inverses.dtype() == Dtype::u8;
  return {{blocks, codes.dim(0), codes.dim(1)},
          codes.data<F8>(),
          in_exponents ? nullptr : inverses.data<float>(),
          in_exponents ? inverses.data<std::uint8_t>() : nullptr};
}

template <class T, class F8>
struct BlockRounding {
  const T* x;
  std::int64_t rows, columns, row, step;  // of x: its sizes and strides
  Written<F8> lying, turned;
  F8Blocks blocks;
  std::int64_t all_rows, all_columns;  // with what is beyond x

  /// What a thread works in: sixteen rows of codes, and a number a column.
  struct Room {
    F8* codes;
    float* numbers;
  };

  float at(std::int64_t i, std::int64_t j) const { return float(x[i * row + j * step]); }
  static float greater(float greatest, float value) {
    const float size = std::abs(value);
    return size > greatest && value - value == 0 ? size : greatest;
  }
  std::int64_t line() const { return F8Grid{blocks, all_rows, all_columns}.line(); }

  /// Columns [from, to) of row i under a scale.
  void round(std::int64_t i, std::int64_t from, std::int64_t to, float scale) const {
    F8* const out = lying.codes + i * all_columns;
    const std::int64_t here = i < rows ? std::clamp(columns, from, to) : from;
    for (std::int64_t j = from; j < here; ++j) out[j] = scaled_to<F8>(at(i, j), scale);
    std::fill(out + here, out + to, F8::from_bits(0));
  }
  void lines(std::int64_t first, std::int64_t last) const {
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t j = 0; j < all_columns; j += line()) {
        float greatest = 0;
        for (std::int64_t at_j = j; i < rows && at_j < std::min(columns, j + line()); ++at_j)
          greatest = greater(greatest, at(i, at_j));
        round(i, j, std::min(all_columns, j + line()), lying.scale(i, j, greatest).scale);
      }
  }
  /// The greatest of each column of some rows.
  void greatest_of_columns(std::int64_t first, std::int64_t last, float* greatest) const {
    std::fill_n(greatest, all_columns, 0.0F);
    for (std::int64_t i = first; i < std::min(last, rows); ++i)
      for (std::int64_t j = 0; j < columns; ++j) greatest[j] = greater(greatest[j], at(i, j));
  }
  /// Codes of some rows, each column under its scale, turned.
  void turn(std::int64_t first, std::int64_t last, const Room& room) const {
    for (std::int64_t unit = first; unit < last; unit += f8_unit) {
      for (std::int64_t i = 0; i < f8_unit; ++i) {
        F8* const to = room.codes + i * all_columns;
        const std::int64_t here = unit + i < rows ? columns : 0;
        for (std::int64_t j = 0; j < here; ++j) to[j] = scaled_to<F8>(at(unit + i, j), room.numbers[j]);
        std::fill(to + here, to + all_columns, F8::from_bits(0));
      }
      for (std::int64_t j = 0; j < all_columns; ++j)
        for (std::int64_t i = 0; i < f8_unit; ++i)
          turned.codes[j * all_rows + unit + i] = room.codes[i * all_columns + j];
    }
  }
  /// Lines of what is turned are parts of columns.
  void turned_lines(std::int64_t first, std::int64_t last, const Room& room) const {
    for (std::int64_t part = first; part < last; part += line()) {
      const std::int64_t end = std::min(last, part + line());
      greatest_of_columns(part, end, room.numbers);
      for (std::int64_t j = 0; j < all_columns; ++j)
        room.numbers[j] = turned.scale(j, part, room.numbers[j]).scale;
      turn(part, end, room);
    }
  }
  void squares(std::int64_t first, std::int64_t last, const Room& room) const {
    greatest_of_columns(first, last, room.numbers);
    for (std::int64_t j = 0; j < all_columns; j += F8Grid::wide) {
      const std::int64_t end = std::min(all_columns, j + F8Grid::wide);
      const float greatest = *std::max_element(room.numbers + j, room.numbers + end);
      float scale = 0;
      if (lying.codes) scale = lying.scale(first, j, greatest).scale;
      if (turned.codes) scale = turned.scale(j, first, greatest).scale;
      std::fill(room.numbers + j, room.numbers + end, scale);
      for (std::int64_t i = first; lying.codes && i < last; ++i) round(i, j, end, scale);
    }
    if (turned.codes) turn(first, last, room);
  }
  void band(std::int64_t number, const Room& room) const {
    const std::int64_t first = number * F8Grid::wide, last = std::min(all_rows, first + F8Grid::wide);
    if (blocks == F8Blocks::squares_of_128) return squares(first, last, room);
    if (lying.codes) lines(first, last);
    if (turned.codes) turned_lines(first, last, room);
  }
};

/// Blocks of nothing but what is beyond the codes.
void fill_inverses(const Tensor& inverses) {
  if (!inverses || inverses.elements() == 0) return;
  if (inverses.dtype() == Dtype::u8)
    std::fill_n(inverses.data<std::uint8_t>(), inverses.elements(), std::uint8_t{0});
  else
    std::fill_n(inverses.data<float>(), inverses.elements(), 1.0F);
}

}  // namespace

void FastKernels::quantize_blocks(const Quantized& out, const Tensor& x, F8Blocks blocks) {
  fill_inverses(out.inverses);
  fill_inverses(out.turned_inverses);
  const auto rounds_to = [&]<class F8>() {
    visit_float(x.dtype(), [&]<class T>() {
      const std::int64_t unit = f8_unit_of(blocks);
      const BlockRounding<T, F8> rounding{.x = x.elements() > 0 ? x.data<T>() : nullptr,
                                          .rows = x.dim(0),
                                          .columns = x.dim(1),
                                          .row = x.stride(0),
                                          .step = x.stride(1),
                                          .lying = written<F8>(out.codes, out.inverses, blocks),
                                          .turned = written<F8>(out.turned, out.turned_inverses, blocks),
                                          .blocks = blocks,
                                          .all_rows = f8_blocks_in(x.dim(0), unit) * unit,
                                          .all_columns = f8_blocks_in(x.dim(1), unit) * unit};
      const std::int64_t wide = rounding.all_columns;
      F8* const codes = scratch_.take<F8>(threads_ * f8_unit * wide);
      float* const numbers = few_.take<float>(threads_ * wide);
      fast::in_parallel(threads_, f8_blocks_in(rounding.all_rows, F8Grid::wide), x.elements(),
                        [&](std::int64_t first, std::int64_t last) {
                          const int me = fast::me();
                          for (std::int64_t i = first; i < last; ++i)
                            rounding.band(i, {codes + me * f8_unit * wide, numbers + me * wide});
                        });
    });
  };
  const Tensor& any = out.codes ? out.codes : out.turned;
  if (any.dtype() == Dtype::f8e5m2)
    rounds_to.template operator()<f8e5m2>();
  else
    rounds_to.template operator()<f8e4m3>();
}

}  // namespace weft
