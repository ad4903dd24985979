// Whole tensors to one number.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

using reference::LoadedRows;

/// Calls f(index, element) in order, until it returns false.
template <class F>
void each(const Tensor& x, F f) {
  const LoadedRows rows(x);
  std::vector<double> row(std::size_t(rows.width()));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    rows.load(i, row);
    for (std::size_t j = 0; j < row.size(); ++j)
      if (!f(i * rows.width() + std::int64_t(j), row[j])) return;
  }
}

/// Adds f(element), which is exact in double.
template <class F>
void add_exactly(const Tensor& digits, const Tensor& x, F f) {
  const std::span<double, exact_digits> sum(digits.as<double>());
  constexpr int mantissa = std::numeric_limits<double>::digits;
  constexpr std::int64_t between_carries = 1 << 20;
  each(x, [&](std::int64_t index, double element) {
    const double value = f(element);
    if (!std::isfinite(value)) {
      sum.back() += value;
    } else if (value != 0) {
      int exponent = 0;
      const double fraction = std::frexp(value, &exponent);
      add_exact(sum, std::int64_t(std::ldexp(fraction, mantissa)), exponent - mantissa);
    }
    if (index % between_carries == between_carries - 1) carry(sum);
    return true;
  });
  carry(sum);
}

}  // namespace

void ReferenceKernels::sum(const Tensor& out, const Tensor& x) {
  called();
  double total = 0;
  each(x, [&](std::int64_t, double element) {
    total += element;
    return true;
  });
  out.as<double>()[0] = total;
}

void ReferenceKernels::sum_exact(const Tensor& digits, const Tensor& x) {
  called();
  add_exactly(digits, x, [](double element) { return element; });
}

void ReferenceKernels::sum_squares(const Tensor& digits, const Tensor& x) {
  called();
  add_exactly(digits, x, [](double element) { return element * element; });
}

void ReferenceKernels::norm_ratios(const Tensor& out, const Tensor& digits, const NormRatioArgs& how) {
  called();
  const std::span<const double> all = digits.as<double>();
  const std::span<float> ratios = out.as<float>();
  const auto sums = std::size_t(digits.dim(1));
  const auto norm = [&](std::size_t sum) {
    return std::sqrt(exact_value(all.subspan(sum * exact_digits).first<exact_digits>()));
  };
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const double a = sums == 2 ? norm(2 * i) : 1, b = norm(sums * i + sums - 1);
    ratios[i] = a == 0 || b == 0 ? how.of_zero : float(std::clamp(a / b, how.least, how.most));
  }
}

void ReferenceKernels::max_abs(const Tensor& out, const Tensor& x) {
  called();
  double greatest = 0;
  each(x, [&](std::int64_t, double element) {
    if (std::isnan(element) || std::abs(element) > greatest) greatest = std::abs(element);
    return !std::isnan(greatest);
  });
  out.as<double>()[0] = greatest;
}

void ReferenceKernels::find_nonfinite(const Tensor& out, const Tensor& x) {
  called();
  std::int64_t found = -1;
  each(x, [&](std::int64_t index, double element) {
    if (!std::isfinite(element)) found = index;
    return found < 0;
  });
  out.as<std::int64_t>()[0] = found;
}

void ReferenceKernels::count_zeros(const Tensor& out, const Tensor& x) {
  called();
  std::int64_t zeros = 0;
  each(x, [&](std::int64_t, double element) {
    zeros += element == 0;
    return true;
  });
  out.as<std::int64_t>()[0] = zeros;
}

}  // namespace weft
