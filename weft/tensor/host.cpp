// Copies through the device's own words, one contiguous run at a time.
#include "weft/tensor/host.h"

#include "weft/base/error.h"

namespace weft {
namespace {

/// Calls run(offset in the storage, elements) for every stretch of consecutive elements, in order. A step
/// reads by it, so nothing is asked of the heap.
template <class Run>
void each_run(const Tensor& tensor, const Run& run) {
  if (tensor.elements() == 0) return;
  if (tensor.contiguous()) return run(tensor.offset(), tensor.elements());
  for (std::int64_t i = 0; i < tensor.dim(0); ++i) each_run(tensor.at(0, i), run);
}

/// Its memory need not be the host's.
template <class T>
void must_hold(const Tensor& tensor) {
  if (tensor.dtype() != dtype_of<T>)
    fail(Kind::internal, "tensor: ", tensor.shape(), " holds ", name(tensor.dtype()), ", read as ",
         name(dtype_of<T>));
}

template <class From>
void widen(const Tensor& tensor, std::vector<double>& out) {
  for (const From value : to_host<From>(tensor)) out.push_back(static_cast<double>(value));
}

}  // namespace

template <class T>
std::vector<T> to_host(const Tensor& tensor) {
  std::vector<T> out(std::size_t(tensor.elements()));
  read(tensor, std::span<T>(out));
  return out;
}

template <class T>
void read(const Tensor& tensor, std::span<T> into) {
  ask_for(tensor, into).wait();
}

template <class T>
Fence ask_for(const Tensor& tensor, std::span<T> into) {
  must_hold<T>(tensor);
  if (std::int64_t(into.size()) != tensor.elements())
    fail(Kind::shape, "read: ", tensor.shape(), " into ", into.size(), " values");
  T* to = into.data();
  Fence last;  // in the order of asking: behind it are all
  each_run(tensor, [&](std::int64_t offset, std::int64_t count) {
    last = tensor.device().copy_to_host(to, *tensor.storage(), offset * std::int64_t(sizeof(T)),
                                        count * std::int64_t(sizeof(T)));
    to += count;
  });
  return last;
}

template <class T>
void copy_to(const Tensor& tensor, std::span<const T> values) {
  must_hold<T>(tensor);
  if (std::int64_t(values.size()) != tensor.elements())
    fail(Kind::shape, "copy_to: ", values.size(), " values for ", tensor.shape());
  const T* from = values.data();
  Fence last;
  each_run(tensor, [&](std::int64_t offset, std::int64_t count) {
    last = tensor.device().copy_from_host(*tensor.storage(), offset * std::int64_t(sizeof(T)), from,
                                          count * std::int64_t(sizeof(T)));
    from += count;
  });
  last.wait();
}

template <class T>
Tensor from_host(Device& device, const Shape& shape, std::span<const T> values, Use use) {
  Tensor out = empty(device, shape, dtype_of<T>, use);
  copy_to(out, values);
  return out;
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> out;
  switch (tensor.dtype()) {
    case Dtype::f64:
      return to_host<double>(tensor);
    case Dtype::i64:
      widen<std::int64_t>(tensor, out);
      break;
    case Dtype::i32:
      widen<std::int32_t>(tensor, out);
      break;
    case Dtype::u8:
      widen<std::uint8_t>(tensor, out);
      break;
    case Dtype::f8e4m3:
      for (const f8e4m3 value : to_host<f8e4m3>(tensor)) out.push_back(double(float(value)));
      break;
    case Dtype::f8e5m2:
      for (const f8e5m2 value : to_host<f8e5m2>(tensor)) out.push_back(double(float(value)));
      break;
    default:
      visit_float(tensor.dtype(), [&]<class T>() {
        for (const T value : to_host<T>(tensor)) out.push_back(double(float(value)));
      });
  }
  return out;
}

namespace {

template <class T>
double only_number(const Tensor& tensor) {
  T x{};
  constexpr auto size = std::int64_t(sizeof(T));
  tensor.device().copy_to_host(&x, *tensor.storage(), tensor.offset() * size, size).wait();
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return double(float(x));
}

}  // namespace

double number(const Tensor& tensor) {
  if (tensor.elements() != 1)
    fail(Kind::shape, "number: a tensor of one element was expected, ", tensor.shape(), " was given");
  if (!tensor.device().holds_numbers()) return 0;
  // Without a vector: steps ask for losses and norms.
  switch (tensor.dtype()) {
    case Dtype::f64:
      return only_number<double>(tensor);
    case Dtype::i64:
      return only_number<std::int64_t>(tensor);
    case Dtype::i32:
      return only_number<std::int32_t>(tensor);
    case Dtype::u8:
      return only_number<std::uint8_t>(tensor);
    default:
      return visit_float(tensor.dtype(), [&]<class T>() { return only_number<T>(tensor); });
  }
}

template void read(const Tensor&, std::span<double>);
template void read(const Tensor&, std::span<float>);
template Fence ask_for(const Tensor&, std::span<double>);
template Fence ask_for(const Tensor&, std::span<float>);
template std::vector<float> to_host(const Tensor&);
template std::vector<double> to_host(const Tensor&);
template std::vector<bf16> to_host(const Tensor&);
template std::vector<f16> to_host(const Tensor&);
template std::vector<f8e4m3> to_host(const Tensor&);
template std::vector<f8e5m2> to_host(const Tensor&);
template std::vector<std::int64_t> to_host(const Tensor&);
template std::vector<std::int32_t> to_host(const Tensor&);
template std::vector<std::uint8_t> to_host(const Tensor&);
template void copy_to(const Tensor&, std::span<const float>);
template void copy_to(const Tensor&, std::span<const double>);
template void copy_to(const Tensor&, std::span<const bf16>);
template void copy_to(const Tensor&, std::span<const f16>);
template void copy_to(const Tensor&, std::span<const f8e4m3>);
template void copy_to(const Tensor&, std::span<const f8e5m2>);
template void copy_to(const Tensor&, std::span<const std::int64_t>);
template void copy_to(const Tensor&, std::span<const std::int32_t>);
template void copy_to(const Tensor&, std::span<const std::uint8_t>);
template Tensor from_host(Device&, const Shape&, std::span<const float>, Use);
template Tensor from_host(Device&, const Shape&, std::span<const double>, Use);
template Tensor from_host(Device&, const Shape&, std::span<const bf16>, Use);
template Tensor from_host(Device&, const Shape&, std::span<const f16>, Use);
template Tensor from_host(Device&, const Shape&, std::span<const std::int64_t>, Use);
template Tensor from_host(Device&, const Shape&, std::span<const std::int32_t>, Use);
template Tensor from_host(Device&, const Shape&, std::span<const std::uint8_t>, Use);

}  // namespace weft
