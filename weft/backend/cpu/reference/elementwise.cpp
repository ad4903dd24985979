// One pass over elements, row by row.
#include <cstring>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;

/// out = f(a, b), element by element
template <class F>
void combine(const Tensor& out, const Tensor& a, const Tensor& b, F f) {
  const LoadedRows to(out);
  const LoadedRows left(a);
  const LoadedRows right(b);
  std::vector<double> x(std::size_t(to.width()));
  std::vector<double> y(x.size());
  for (std::int64_t i = 0; i < to.count(); ++i) {
    left.load(i, x);
    right.load(i, y);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = f(x[j], y[j]);
    to.store(i, x);
  }
}

/// Elements of one size as they are, so that no bit of an integer or a NaN is lost.
void copy_bits(const Tensor& out, const Tensor& in) {
  if (out.elements() == 0) return;
  if (out.rank() > 0 && !(out.contiguous() && in.contiguous())) {
    for (std::int64_t i = 0; i < out.dim(0); ++i) copy_bits(out.at(0, i), in.at(0, i));
    return;
  }
  std::memmove(out.address(), in.address(), std::size_t(out.bytes()));
}

}  // namespace

void ReferenceKernels::fill(const Tensor& out, double value) {
  called();
  const LoadedRows rows(out);
  const std::vector<double> row(std::size_t(rows.width()), value);
  for (std::int64_t i = 0; i < rows.count(); ++i) rows.store(i, row);
}

void ReferenceKernels::copy(const Tensor& out, const Tensor& in) {
  called();
  if (out.dtype() == in.dtype()) return copy_bits(out, in);
  const LoadedRows to(out);
  const LoadedRows from(in);
  for (std::int64_t i = 0; i < to.count(); ++i) to.store(i, from.load(i));
}

void ReferenceKernels::add(const Tensor& out, const Tensor& a, const Tensor& b) {
  called();
  combine(out, a, b, [](double x, double y) { return x + y; });
}

void ReferenceKernels::add_scaled(const Tensor& out, const Tensor& x, float alpha) {
  called();
  combine(out, out, x, [alpha](double o, double value) { return o + double(alpha) * value; });
}

void ReferenceKernels::scale(const Tensor& x, float alpha) {
  called();
  combine(x, x, x, [alpha](double value, double) { return double(alpha) * value; });
}

void ReferenceKernels::multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
  called();
  combine(out, a, b, [](double x, double y) { return x * y; });
}

void ReferenceKernels::add_bias(const Tensor& x, const Tensor& bias) {
  called();
  const LoadedRows rows(x);
  const std::vector<double> more = reference::load(bias);
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    std::vector<double> row = rows.load(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] += more[j];
    rows.store(i, row);
  }
}

void ReferenceKernels::sum_rows(const Tensor& dbias, const Tensor& dy) {
  called();
  const LoadedRows rows(dy);
  std::vector<double> sum(std::size_t(rows.width()));
  std::vector<double> row(sum.size());
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    rows.load(i, row);
    for (std::size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
  }
  const std::vector<double> before = reference::load(dbias);
  for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += before[j];
  reference::store(dbias, sum);
}

}  // namespace weft
