// Softmax in the stable form: exp(x - max) / sum of exp(x - max).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::Rows;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Minus infinities are what is masked; a row of nothing else becomes zeros.
void softmax_row(std::span<double> row) {
  if (row.empty()) return;
  const double max = *std::max_element(row.begin(), row.end());
  if (max == -infinity) return std::fill(row.begin(), row.end(), 0.0);
  double sum = 0;
  for (double& element : row) sum += element = std::exp(element - max);
  for (double& element : row) element /= sum;
}

}  // namespace

void ReferenceKernels::softmax(const Tensor& y, const Tensor& x, Mask mask, const Tensor& padding) {
  called();
  const Rows to(y);
  const Rows from(x);
  const std::int64_t sk = from.width();
  const std::int64_t sq = x.rank() > 1 ? x.dim(-2) : 1;
  const std::int64_t rows_per_batch = x.rank() > 1 && x.dim(0) > 0 ? from.count() / x.dim(0) : 1;
  const std::vector<double> real = padding ? reference::load(padding) : std::vector<double>();
  for (std::int64_t i = 0; i < from.count(); ++i) {
    std::vector<double> row = from.load(i);
    const std::int64_t last = mask == Mask::causal ? i % sq + sk - sq : sk;
    for (std::int64_t j = 0; j < sk; ++j) {
      const bool masked = j > last || (padding && real[std::size_t(i / rows_per_batch * sk + j)] == 0);
      if (masked) row[std::size_t(j)] = -infinity;
    }
    softmax_row(row);
    to.store(i, row);
  }
}

// dx = y (dy - <dy, y>)
void ReferenceKernels::softmax_backward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  called();
  const Rows to(dx);
  const Rows given(dy);
  const Rows from(y);
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const std::vector<double> p = from.load(i);
    std::vector<double> row = given.load(i);
    const double along = std::inner_product(p.begin(), p.end(), row.begin(), 0.0);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = p[j] * (row[j] - along);
    to.store(i, row);
  }
}

void ReferenceKernels::log_sum_exp(const Tensor& out, const Tensor& x) {
  called();
  const Rows from(x);
  std::vector<double> logs;
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const std::vector<double> row = from.load(i);
    const double max = row.empty() ? -infinity : *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double element : row) sum += std::exp(element - max);
    logs.push_back(std::isinf(max) ? max : max + std::log(sum));
  }
  reference::store(out, logs);
}

}  // namespace weft
