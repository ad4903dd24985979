// Softmax in the stable form: exp(x - max) / sum of exp(x - max).
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A row of nothing but minus infinities becomes zeros.
void softmax_row(std::span<double> row) {
  if (row.empty()) return;
  const double max = *std::max_element(row.begin(), row.end());
  if (max == -infinity) return std::fill(row.begin(), row.end(), 0.0);
  double sum = 0;
  for (double& element : row) sum += element = std::exp(element - max);
  for (double& element : row) element /= sum;
}

}  // namespace

void ReferenceKernels::softmax(const Tensor& y, const Tensor& x) {
  called();
  const LoadedRows to(y);
  const LoadedRows from(x);
  for (std::int64_t i = 0; i < from.count(); ++i) {
    std::vector<double> row = from.load(i);
    softmax_row(row);
    to.store(i, row);
  }
}

}  // namespace weft
