// Rounding to eight bits: sixteen rows at a time, so that what is turned is written sixteen codes at a time.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/parallel.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

/// A matrix as it lies, and what becomes of it.
template <class T, class F8>
struct Rounding {
  const T* x;
  std::int64_t rows, columns, row, step;  // of x: its sizes and strides
  F8 *codes, *turned;
  std::int64_t all_rows, all_columns;  // with what is beyond x
  float scale;

  /// Rows [first, first + f8_unit); the greatest that was met there.
  float unit(std::int64_t first, F8* room) const {
    float greatest = 0;
    for (std::int64_t i = 0; i < f8_unit; ++i) {
      F8* const to = room + i * all_columns;
      const std::int64_t here = first + i < rows ? columns : 0;
      const T* const from = x + (first + i) * row;
      for (std::int64_t j = 0; j < here; ++j) {
        const auto value = float(from[j * step]);
        const float size = std::abs(value);
        greatest = size > greatest && value - value == 0 ? size : greatest;
        to[j] = scaled_to<F8>(value, scale);
      }
      std::fill(to + here, to + all_columns, F8::from_bits(0));
    }
    if (codes) std::copy_n(room, f8_unit * all_columns, codes + first * all_columns);
    if (turned) turn(first, room);
    return greatest;
  }
  void turn(std::int64_t first, const F8* room) const {
    for (std::int64_t j = 0; j < all_columns; ++j)
      for (std::int64_t i = 0; i < f8_unit; ++i) turned[j * all_rows + first + i] = room[i * all_columns + j];
  }
};

template <class T, class F8>
Rounding<T, F8> rounding_of(const Quantized& out, const Tensor& x, const Tensor& scale) {
  return {.x = x.elements() > 0 ? x.data<T>() : nullptr,
          .rows = x.dim(0),
          .columns = x.dim(1),
          .row = x.stride(0),
          .step = x.stride(1),
          .codes = out.codes ? out.codes.data<F8>() : nullptr,
          .turned = out.turned ? out.turned.data<F8>() : nullptr,
          .all_rows = (x.dim(0) + f8_unit - 1) / f8_unit * f8_unit,
          .all_columns = (x.dim(1) + f8_unit - 1) / f8_unit * f8_unit,
          .scale = scale ? scale.as<float>()[0] : 1.0F};
}

}  // namespace

void FastKernels::quantize(const Quantized& out, const Tensor& x, const Tensor& scale, const Tensor& met) {
  const auto rounds_to = [&]<class F8>() {
    visit_float(x.dtype(), [&]<class T>() {
      const auto rounding = rounding_of<T, F8>(out, x, scale);
      const std::int64_t room = f8_unit * rounding.all_columns;
      F8* const rooms = scratch_.take<F8>(threads_ * room);
      float* const greatest = few_.take<float>(threads_);
      std::fill_n(greatest, threads_, 0.0F);
      fast::in_parallel(
          threads_, rounding.all_rows / f8_unit, x.elements(), [&](std::int64_t first, std::int64_t last) {
            const int me = fast::me();
            for (std::int64_t i = first; i < last; ++i)
              greatest[me] = std::max(greatest[me], rounding.unit(i * f8_unit, rooms + me * room));
          });
      if (met)
        met.as<float>()[0] = std::max(met.as<float>()[0], *std::max_element(greatest, greatest + threads_));
    });
  };
  const Tensor& any = out.codes ? out.codes : out.turned;
  if (any && any.dtype() == Dtype::f8e5m2)
    rounds_to.template operator()<f8e5m2>();
  else
    rounds_to.template operator()<f8e4m3>();
}

}  // namespace weft
