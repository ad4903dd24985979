// Eight bits: rounding, products and scales. Numbers are scaled in f32, as every device does: codes are the
// same everywhere.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

using reference::LoadedRows;

template <class F8>
void write_codes(const Tensor& codes, const Tensor& x, float scale) {
  const LoadedRows from(x), to(codes);
  std::vector<double> row(std::size_t(to.width()));
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::ranges::fill(row, 0.0);
    if (i < from.count()) from.load(i, std::span(row).first(std::size_t(from.width())));
    for (double& value : row) value = double(float(scaled_to<F8>(float(value), scale)));
    to.store(i, row);
  }
}

void write_any(const Tensor& codes, const Tensor& x, float scale) {
  if (!codes) return;
  if (codes.dtype() == Dtype::f8e4m3)
    write_codes<f8e4m3>(codes, x, scale);
  else
    write_codes<f8e5m2>(codes, x, scale);
}

float greatest_of(const Tensor& x, float before) {
  const LoadedRows rows(x);
  double greatest = double(before);
  for (std::int64_t i = 0; i < rows.count(); ++i)
    for (const double value : rows.load(i))
      if (std::isfinite(value)) greatest = std::max(greatest, std::abs(value));
  return float(greatest);
}

}  // namespace

void ReferenceKernels::quantize(const Quantized& out, const Tensor& x, const Tensor& scale,
                                const Tensor& met) {
  called();
  if (out.codes) write_any(out.codes, x, scale.as<float>()[0]);
  if (out.turned) write_any(out.turned.permute({1, 0}), x, scale.as<float>()[0]);
  if (met) met.as<float>()[0] = greatest_of(x, met.as<float>()[0]);
}

void ReferenceKernels::scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b,
                                     const ScaledArgs& how) {
  called();
  const LoadedRows rows(out), left(a), right(b);
  const double inverse = double(how.a_inverse.as<float>()[0]) * double(how.b_inverse.as<float>()[0]);
  const std::vector<double> bias = reference::load_or_zeros(how.bias, rows.width());
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    const std::vector<double> of_a = left.load(i);
    std::vector<double> sums = how.accumulate ? rows.load(i) : std::vector<double>(bias.size());
    for (std::int64_t j = 0; j < rows.width(); ++j) {
      const std::vector<double> of_b = right.load(j);
      double sum = 0;
      for (std::size_t k = 0; k < of_a.size(); ++k) sum += of_a[k] * of_b[k];
      sums[std::size_t(j)] += sum * inverse + bias[std::size_t(j)];
    }
    rows.store(i, sums);
  }
}

void ReferenceKernels::renew_scales(const Tensor& all, const ScaleArgs& how) {
  called();
  const LoadedRows rows(all);
  const auto by_margin = float(std::ldexp(1.0, -how.margin));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    std::vector<double> row = rows.load(i);
    const auto met = row.begin() + ScaleRow::met;
    const double greatest = how.of_window ? *std::max_element(met, row.end()) : *met;
    const float scale =
        next_scale(float(greatest), float(row[ScaleRow::scale]), largest_of(how.dtype), by_margin);
    std::copy_backward(met, row.end() - 1, row.end());
    *met = 0;
    row[ScaleRow::scale] = double(scale);
    row[ScaleRow::inverse] = double(1 / scale);
    rows.store(i, row);
  }
}

}  // namespace weft
