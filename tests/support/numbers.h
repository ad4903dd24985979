// Tensors of any type but the 8-bit floats from plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/tensor/host.h"

namespace weft {

/// Writes the numbers, rounded to what the tensor holds.
inline void put(const Tensor& tensor, const std::vector<double>& values) {
  const auto write = [&]<class T>() {
    std::vector<T> typed;
    typed.reserve(values.size());
    for (const double value : values) {
      if constexpr (std::is_arithmetic_v<T>)
        typed.push_back(static_cast<T>(value));
      else
        typed.push_back(T(static_cast<float>(value)));
    }
    copy_to<T>(tensor, typed);
  };
  switch (tensor.dtype()) {
    case Dtype::f64:
      return write.operator()<double>();
    case Dtype::i64:
      return write.operator()<std::int64_t>();
    case Dtype::i32:
      return write.operator()<std::int32_t>();
    case Dtype::u8:
      return write.operator()<std::uint8_t>();
    case Dtype::f8e4m3:
      return write.operator()<f8e4m3>();
    case Dtype::f8e5m2:
      return write.operator()<f8e5m2>();
    default:
      visit_float(tensor.dtype(), write);
  }
}

inline Tensor of(Device& device, const Shape& shape, Dtype dtype, const std::vector<double>& values) {
  Tensor out = empty(device, shape, dtype);
  put(out, values);
  return out;
}

}  // namespace weft
