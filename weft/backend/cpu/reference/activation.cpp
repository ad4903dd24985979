// Pointwise functions and their derivatives.
#include <cmath>
#include <numbers>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;

/// A function at one point, and its slope there.
struct Point {
  double value, slope;
};

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

// 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
Point gelu(double x) {
  const double c = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)};
}

// x Phi(x)
Point gelu_erf(double x) {
  const double phi = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return {x * phi, phi + x * density};
}

// x sigmoid(a x)
Point swish(double x, double a) {
  const double s = sigmoid(a * x);
  return {x * s, s + a * x * s * (1 - s)};
}

Point evaluate(Activation kind, double x) {
  switch (kind) {
    case Activation::identity:
      return {x, 1};
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_erf:
      return gelu_erf(x);
    case Activation::quick_gelu:
      return swish(x, 1.702);
    case Activation::silu:
      return swish(x, 1);
    case Activation::relu:
      return x > 0 ? Point{x, 1} : Point{0 * x, 0};
    case Activation::squared_relu:
      return x > 0 ? Point{x * x, 2 * x} : Point{0 * x, 0};
    case Activation::tanh:
      return {std::tanh(x), 1 - std::tanh(x) * std::tanh(x)};
    case Activation::sigmoid:
      return {sigmoid(x), sigmoid(x) * sigmoid(-x)};
  }
  return {x, 1};
}

/// Both halves of a gate at one place: what each becomes, and the slope of that.
struct Halves {
  Point gate, up;
};

Halves evaluate(const Gate& kind, double gate, double up) {
  const double limit = kind.limit;
  Halves out{evaluate(kind.f, gate > limit ? limit : gate), {up + kind.offset, 1}};
  if (gate > limit) out.gate.slope = 0;
  if (up > limit) out.up = {limit + kind.offset, 0};
  if (up < -limit) out.up = {-limit + kind.offset, 0};
  return out;
}

/// x + bias, row by row
class Biased {
 public:
  Biased(const Tensor& x, const Tensor& bias)
      : rows_(x), bias_(reference::load_or_zeros(bias, rows_.width())) {}
  std::vector<double> load(std::int64_t i) const {
    std::vector<double> row = rows_.load(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] += bias_[j];
    return row;
  }

 private:
  LoadedRows rows_;
  std::vector<double> bias_;
};

}  // namespace

void ReferenceKernels::activation(const Tensor& y, const Tensor& x, const Tensor& bias, Activation kind) {
  called();
  const LoadedRows to(y);
  const Biased from(x, bias);
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::vector<double> row = from.load(i);
    for (double& element : row) element = evaluate(kind, element).value;
    to.store(i, row);
  }
}

void ReferenceKernels::activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x,
                                           const Tensor& bias, Activation kind) {
  called();
  const LoadedRows to(dx);
  const LoadedRows given(dy);
  const Biased from(x, bias);
  for (std::int64_t i = 0; i < to.count(); ++i) {
    const std::vector<double> at = from.load(i);
    std::vector<double> row = given.load(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] *= evaluate(kind, at[j]).slope;
    to.store(i, row);
  }
}

void ReferenceKernels::gated(const Tensor& y, const Tensor& x, const Tensor& bias, const Gate& kind) {
  called();
  const LoadedRows to(y);
  const Biased from(x, bias);
  const auto f = std::size_t(to.width());
  std::vector<double> row(f);
  for (std::int64_t i = 0; i < to.count(); ++i) {
    const std::vector<double> in = from.load(i);
    for (std::size_t j = 0; j < f; ++j) {
      const Halves at = evaluate(kind, in[j], in[f + j]);
      row[j] = at.gate.value * at.up.value;
    }
    to.store(i, row);
  }
}

void ReferenceKernels::gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                      const Gate& kind) {
  called();
  const LoadedRows to(dx);
  const LoadedRows given(dy);
  const Biased from(x, bias);
  const auto f = std::size_t(given.width());
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::vector<double> row = from.load(i);
    const std::vector<double> slope = given.load(i);
    for (std::size_t j = 0; j < f; ++j) {
      const Halves at = evaluate(kind, row[j], row[f + j]);
      row[j] = slope[j] * at.up.value * at.gate.slope;
      row[f + j] = slope[j] * at.gate.value * at.up.slope;
    }
    to.store(i, row);
  }
}

}  // namespace weft
