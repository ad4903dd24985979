// Elements of any type, by way of a double.
#pragma once

#include "weft/backend/cuda/rows.h"

namespace weft::cuda {

__device__ __forceinline__ double get_any(const Rows& rows, std::int64_t at) {
  switch (rows.dtype) {
    case Dtype::f64:
      return reinterpret_cast<const double*>(rows.data)[at];
    case Dtype::i64:
      return double(reinterpret_cast<const std::int64_t*>(rows.data)[at]);
    case Dtype::i32:
      return reinterpret_cast<const std::int32_t*>(rows.data)[at];
    case Dtype::u8:
      return rows.data[at];
    case Dtype::f8e4m3:
      return float(f8e4m3::from_bits(rows.data[at]));
    case Dtype::f8e5m2:
      return float(f8e5m2::from_bits(rows.data[at]));
    default:
      return get(rows, at);
  }
}
__device__ __forceinline__ void put_any(const Rows& rows, std::int64_t at, double x) {
  switch (rows.dtype) {
    case Dtype::f64:
      reinterpret_cast<double*>(rows.data)[at] = x;
      break;
    case Dtype::i64:
      reinterpret_cast<std::int64_t*>(rows.data)[at] = std::int64_t(x);
      break;
    case Dtype::i32:
      reinterpret_cast<std::int32_t*>(rows.data)[at] = std::int32_t(x);
      break;
    case Dtype::u8:
      rows.data[at] = std::uint8_t(x);
      break;
    case Dtype::f8e4m3:
      rows.data[at] = f8e4m3(float(x)).bits;
      break;
    case Dtype::f8e5m2:
      rows.data[at] = f8e5m2(float(x)).bits;
      break;
    default:
      put(rows, at, float(x));
  }
}

/// Columns [column, column + 8) of the row that begins at start, as far as it reaches.
__device__ __forceinline__ void read_any(const Rows& rows, std::int64_t start, std::int64_t column,
                                         double (&x)[8]) {
  if (is_float(rows.dtype)) {
    const Eight e = read(rows, start, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = e.x[i];
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    x[i] = column + i < rows.width ? get_any(rows, start + (column + i) * rows.step) : 0;
}

}  // namespace weft::cuda
