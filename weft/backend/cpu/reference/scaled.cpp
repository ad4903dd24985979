// Eight bits: rounding, products and scales. Numbers are scaled in f32, as every device does: codes are the
// same everywhere.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"
#include "weft/tensor/f8_blocks.h"
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

/// What x is scaled by, block by block, in the order of their places.
std::vector<BlockScale> scales_of(const F8Grid& grid, const Tensor& x, float largest) {
  std::vector<double> greatest(std::size_t(grid.places()));
  const LoadedRows rows(x);
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    const std::vector<double> row = rows.load(i);
    for (std::int64_t j = 0; j < rows.width(); ++j) {
      double& here = greatest[std::size_t(grid.place(i, j))];
      if (const double size = std::abs(row[std::size_t(j)]); std::isfinite(size)) here = std::max(here, size);
    }
  }
  std::vector<BlockScale> out;
  for (const double each : greatest)
    out.push_back(grid.blocks == F8Blocks::lines_of_32 ? exponent_of_block(float(each), largest)
                                                       : scale_of_block(float(each), largest));
  return out;
}

void put_inverses(const Tensor& inverses, const std::vector<BlockScale>& scales) {
  for (std::size_t i = 0; i < scales.size(); ++i)
    if (inverses.dtype() == Dtype::u8)
      inverses.as<std::uint8_t>()[i] = scales[i].exponent;
    else
      inverses.as<float>()[i] = scales[i].inverse;
}

/// codes [r', c'] of x [r, c]
template <class F8>
void round_blocks(const Tensor& codes, const Tensor& inverses, const Tensor& x, F8Blocks blocks) {
  const F8Grid grid{blocks, codes.dim(0), codes.dim(1)};
  const std::vector<BlockScale> scales = scales_of(grid, x, largest_of(codes.dtype()));
  put_inverses(inverses, scales);
  const LoadedRows from(x), to(codes);
  std::vector<double> row(std::size_t(to.width()));
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::ranges::fill(row, 0.0);
    if (i < from.count()) from.load(i, std::span(row).first(std::size_t(from.width())));
    for (std::int64_t j = 0; j < to.width(); ++j) {
      double& value = row[std::size_t(j)];
      value = double(float(scaled_to<F8>(float(value), scales[std::size_t(grid.place(i, j))].scale)));
    }
    to.store(i, row);
  }
}

void round_any(const Tensor& codes, const Tensor& inverses, const Tensor& x, F8Blocks blocks) {
  if (!codes) return;
  if (codes.dtype() == Dtype::f8e4m3)
    round_blocks<f8e4m3>(codes, inverses, x, blocks);
  else
    round_blocks<f8e5m2>(codes, inverses, x, blocks);
}

/// What a row's codes are multiplied by to be what they stand for.
std::vector<double> inverses_of_row(const F8Grid& grid, const Tensor& inverses, std::int64_t row) {
  std::vector<double> out(std::size_t(grid.columns));
  for (std::int64_t j = 0; j < grid.columns; ++j) {
    const auto at = std::size_t(grid.place(row, j));
    out[std::size_t(j)] = inverses.dtype() == Dtype::u8
                              ? double(power_of_exponent(inverses.as<std::uint8_t>()[at]))
                              : double(inverses.as<float>()[at]);
  }
  return out;
}

/// Rows of codes, and what they stand for.
struct Codes {
  LoadedRows rows;
  Tensor inverses;
  F8Grid grid;
  Codes(const Tensor& codes, const Tensor& over, F8Blocks blocks)
      : rows(codes), inverses(over), grid{blocks, codes.dim(0), codes.dim(1)} {}
  std::vector<double> load(std::int64_t row) const {
    std::vector<double> out = rows.load(row);
    const std::vector<double> by = inverses_of_row(grid, inverses, row);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] *= by[k];
    return out;
  }
};

}  // namespace

void ReferenceKernels::quantize_blocks(const Quantized& out, const Tensor& x, F8Blocks blocks) {
  called();
  round_any(out.codes, out.inverses, x, blocks);
  round_any(out.turned, out.turned_inverses, x.permute({1, 0}), blocks);
}

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
  const LoadedRows rows(out);
  const Codes left(a, how.a_inverse, how.a_blocks), right(b, how.b_inverse, how.b_blocks);
  const std::vector<double> bias = reference::load_or_zeros(how.bias, rows.width());
  std::vector<std::vector<double>> every_b;
  for (std::int64_t j = 0; j < rows.width(); ++j) every_b.push_back(right.load(j));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    const std::vector<double> of_a = left.load(i);
    std::vector<double> sums = how.accumulate ? rows.load(i) : std::vector<double>(bias.size());
    for (std::int64_t j = 0; j < rows.width(); ++j) {
      const std::vector<double>& of_b = every_b[std::size_t(j)];
      double sum = 0;
      for (std::size_t k = 0; k < of_a.size(); ++k) sum += of_a[k] * of_b[k];
      sums[std::size_t(j)] += sum + bias[std::size_t(j)];
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
