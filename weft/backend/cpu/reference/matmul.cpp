// Products: rows of b, in double, are added up for each row of out, in ascending k.
#include <vector>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::load;
using reference::LoadedRows;

/// Columns [from, from + count) of a's row, times the same rows of b, added to out.
void add_products(std::span<double> out, std::span<const double> a, std::span<const double> b) {
  const std::size_t n = out.size();
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double factor = a[k];
    const double* row = b.data() + k * n;
    for (std::size_t j = 0; j < n; ++j) out[j] += factor * row[j];
  }
}

/// The product of slabs [first, last), added as a balanced tree in f32.
std::vector<double> tree(std::span<const double> a, std::span<const double> b, std::size_t n, int slabs) {
  std::vector<double> out(n);
  if (slabs == 1) {
    add_products(out, a, b);
    return out;
  }
  const int left = slabs / 2;
  const std::size_t k = a.size() / std::size_t(slabs) * std::size_t(left);
  const std::vector<double> low = tree(a.first(k), b.first(k * n), n, left);
  const std::vector<double> high = tree(a.subspan(k), b.subspan(k * n), n, slabs - left);
  for (std::size_t j = 0; j < n; ++j) out[j] = double(float(low[j]) + float(high[j]));
  return out;
}

/// One matrix: out [m, n] (+)= a [m, k] b [k, n] (+ bias [n]), a and b already turned.
void plain_product(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  const LoadedRows rows(out);
  const LoadedRows left(a);
  const std::vector<double> right = load(b);
  const std::vector<double> bias = reference::load_or_zeros(how.bias, rows.width());
  const std::size_t n = std::size_t(rows.width());
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    std::vector<double> sum = tree(left.load(i), right, n, how.slabs);
    const std::vector<double> before = how.accumulate ? rows.load(i) : std::vector<double>(n);
    for (std::size_t j = 0; j < n; ++j) sum[j] += before[j] + bias[j];
    rows.store(i, sum);
  }
}

Tensor turned(const Tensor& matrix, Read read) {
  return read == Read::as_is ? matrix : matrix.permute({1, 0});
}

}  // namespace

void ReferenceKernels::matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  called();
  if (out.rank() == 2) return plain_product(out, turned(a, how.a), turned(b, how.b), how);
  for (std::int64_t i = 0; i < out.dim(0); ++i)
    plain_product(out.at(0, i), turned(a.at(0, i), how.a), turned(b.at(0, i), how.b), how);
}

void ReferenceKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b,
                                      const Groups& groups, const MatmulArgs& how) {
  called();
  const bool gradient = how.a == Read::transposed;
  const auto offsets = groups.offsets;
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    const std::int64_t first = offsets[g];
    const std::int64_t count = offsets[g + 1] - first;
    const Tensor rows = a.slice(0, first, count);
    MatmulArgs one = how;
    if (how.bias) one.bias = how.bias.at(0, std::int64_t(g));
    if (gradient)
      plain_product(out.at(0, std::int64_t(g)), rows.permute({1, 0}), b.slice(0, first, count), one);
    else
      plain_product(out.slice(0, first, count), rows, turned(b.at(0, std::int64_t(g)), how.b), one);
  }
}

}  // namespace weft
