// One loop per type, chosen once per tensor.
#include "weft/backend/cpu/reference/rows.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace weft::reference {
namespace {

template <class T>
T rounded(double x) {
  if constexpr (std::is_integral_v<T>) {
    // Beyond the range a cast has no meaning in C++.
    if (std::isnan(x)) return 0;
    if (x <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (x >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(x);
  } else if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return T(static_cast<float>(x));
  }
}

template <class T>
void load_as(const std::byte* from, std::int64_t step, std::span<double> out) {
  const T* x = reinterpret_cast<const T*>(from);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(x[std::int64_t(i) * step]);
}

template <class T>
void store_as(std::byte* to, std::int64_t step, std::span<const double> in) {
  T* x = reinterpret_cast<T*>(to);
  for (std::size_t i = 0; i < in.size(); ++i) x[std::int64_t(i) * step] = rounded<T>(in[i]);
}

template <class F>
void visit_any(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::f32:
      return f.template operator()<float>();
    case Dtype::bf16:
      return f.template operator()<bf16>();
    case Dtype::f16:
      return f.template operator()<f16>();
    case Dtype::f8e4m3:
      return f.template operator()<f8e4m3>();
    case Dtype::f8e5m2:
      return f.template operator()<f8e5m2>();
    case Dtype::f64:
      return f.template operator()<double>();
    case Dtype::i64:
      return f.template operator()<std::int64_t>();
    case Dtype::i32:
      return f.template operator()<std::int32_t>();
    case Dtype::u8:
      return f.template operator()<std::uint8_t>();
  }
}

}  // namespace

LoadedRows::LoadedRows(const Tensor& tensor)
    : first_(static_cast<std::byte*>(tensor.address())),
      size_(size_of(tensor.dtype())),
      count_(1),
      width_(tensor.rank() == 0 ? 1 : tensor.dim(-1)),
      step_(tensor.rank() == 0 ? 1 : tensor.stride(-1)),
      shape_(tensor.shape()),
      strides_(tensor.strides()) {
  for (int i = 0; i + 1 < tensor.rank(); ++i) count_ *= tensor.dim(i);
  visit_any(tensor.dtype(), [&]<class T>() {
    load_ = load_as<T>;
    store_ = store_as<T>;
  });
}

std::vector<double> LoadedRows::load(std::int64_t row) const {
  std::vector<double> out(static_cast<std::size_t>(width_));
  load(row, out);
  return out;
}

std::byte* LoadedRows::at(std::int64_t row) const {
  std::int64_t offset = 0;
  for (int i = shape_.rank() - 2; i >= 0; --i) {
    offset += row % shape_[i] * strides_[i];
    row /= shape_[i];
  }
  return first_ + offset * size_;
}

std::vector<double> load(const Tensor& tensor) {
  const LoadedRows rows(tensor);
  std::vector<double> out(std::size_t(rows.count() * rows.width()));
  for (std::int64_t i = 0; i < rows.count(); ++i)
    rows.load(i, std::span(out).subspan(std::size_t(i * rows.width()), std::size_t(rows.width())));
  return out;
}

std::vector<double> load_or_zeros(const Tensor& tensor, std::int64_t count) {
  return tensor ? load(tensor) : std::vector<double>(std::size_t(count));
}

void store(const Tensor& tensor, std::span<const double> values) {
  const LoadedRows rows(tensor);
  for (std::int64_t i = 0; i < rows.count(); ++i)
    rows.store(i, values.subspan(std::size_t(i * rows.width()), std::size_t(rows.width())));
}

}  // namespace weft::reference
