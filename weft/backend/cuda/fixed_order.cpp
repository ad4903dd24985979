#include "weft/backend/cuda/fixed_order.h"

#include <bit>

#include "weft/base/error.h"
#include "weft/tensor/host.h"
#include "weft/tensor/kernels.h"

namespace weft::cuda {
namespace {

constexpr std::int64_t m = 160, n = 144, k = 96, first_row = 37, first_column = 19;

Tensor numbers(Device& device, const Shape& shape, Dtype dtype, std::uint64_t sample) {
  const Tensor out = empty(device, shape, dtype, Use::workspace);
  device.kernels().random_normal(out, 0, 1, {.at = {.sample = sample}, .columns = shape[1]});
  return out;
}

std::vector<float> product(const Tensor& a, const Tensor& b) {
  const Tensor out = empty(a.device(), {a.dim(0), b.dim(1)}, Dtype::f32, Use::workspace);
  a.device().kernels().matmul(out, a, b, {});
  return to_host<float>(out);
}

bool holds_bits(Device& device, Dtype dtype) {
  const Tensor a = numbers(device, {m, k}, dtype, 1), b = numbers(device, {k, n}, dtype, 2);
  const std::int64_t rows = m - first_row, columns = n - first_column;
  const std::vector<float> whole = product(a, b),
                           part = product(a.slice(0, first_row, rows), b.slice(1, first_column, columns));
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      if (bits(part[std::size_t(i * columns + j)]) !=
          bits(whole[std::size_t((first_row + i) * n + first_column + j)]))
        return false;
  return true;
}

}  // namespace

void must_hold_bits(Device& device) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    if (!holds_bits(device, dtype))
      fail(Kind::device, "device cuda: exact mode multiplied a matrix in ", dtype,
           " and a part of it, and their bits differ: this GPU's products show how rows and columns are "
           "shared out; leave {model.exact} out, or take {run.device=cpu}");
}

}  // namespace weft::cuda
