// Activations at every bf16 number, against the same in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "weft/backend/cpu/fast/loops.h"
#include "weft/base/half.h"

namespace weft::fast {
namespace {

double logistic(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

double gelu(double x) {
  return x * logistic(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
double gelu_erf(double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; }
double silu(double x) { return x * logistic(x); }

std::vector<bf16> every_bf16() {
  std::vector<bf16> all(0x10000);
  for (std::uint32_t code = 0; code < all.size(); ++code) all[code] = bf16::from_bits(std::uint16_t(code));
  return all;
}

/// Half a step is what rounding costs; the rest is the loop's. A result below 3e-37 may be 0: its e^-x is no
/// f32.
void expect_rounded_once(InstructionSet set, Activation kind, const std::function<double(double)>& right) {
  const std::vector<bf16> x = every_bf16();
  std::vector<bf16> y(x.size());
  loops(set).activation.forward(kind, {y.data(), Type::bf16, false}, {x.data(), Type::bf16}, nullptr,
                                std::int64_t(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = double(float(x[i]));
    if (std::isnan(at)) {
      ASSERT_TRUE(std::isnan(float(y[i]))) << name(set) << " at code " << i;
    }
    if (!std::isfinite(at)) continue;
    const double expected = right(at);
    const double step = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 7);
    ASSERT_LE(std::abs(double(float(y[i])) - expected), std::max(0.51 * step, 3e-37))
        << name(set) << " at " << at;
  }
}

TEST(Precision, activations_of_every_bf16_are_right_to_a_hundredth_of_a_step) {
  for (const InstructionSet set : all_here()) {
    expect_rounded_once(set, Activation::gelu, gelu);
    expect_rounded_once(set, Activation::gelu_erf, gelu_erf);
    expect_rounded_once(set, Activation::silu, silu);
    expect_rounded_once(set, Activation::sigmoid, logistic);
    expect_rounded_once(set, Activation::tanh, [](double x) { return std::tanh(x); });
  }
}

}  // namespace
}  // namespace weft::fast
