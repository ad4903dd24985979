// Activations at every bf16 number, against the same in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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

/// Half a step is what rounding costs; the rest is the loop's, whose 1.1e-4 are three hundredths of a step at
/// most: a polynomial of degree 3 for 2^t and no division. A result below 3e-37 may be 0: its e^-x is no f32.
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
    ASSERT_LE(std::abs(double(float(y[i])) - expected), std::max(0.53 * step, 3e-37))
        << name(set) << " at " << at;
  }
}

TEST(Precision, activations_of_every_bf16_are_right_to_three_hundredths_of_a_step) {
  for (const InstructionSet set : all_here()) {
    expect_rounded_once(set, Activation::gelu, gelu);
    expect_rounded_once(set, Activation::gelu_erf, gelu_erf);
    expect_rounded_once(set, Activation::silu, silu);
    expect_rounded_once(set, Activation::sigmoid, logistic);
    expect_rounded_once(set, Activation::tanh, [](double x) { return std::tanh(x); });
  }
}

/// Forward and backward of every bf16 number, in rows of n.
std::vector<bf16> results(InstructionSet set, Activation kind, std::size_t n) {
  const std::vector<bf16> x = every_bf16();
  const std::vector<bf16> dy(x.size(), bf16(3.0F));
  std::vector<bf16> both(2 * x.size());
  const ActivationLoops& loop = loops(set).activation;
  for (std::size_t i = 0; i < x.size(); i += n) {
    const auto size = std::int64_t(std::min(n, x.size() - i));
    const In in = {&x[i], Type::bf16};
    loop.forward(kind, {&both[i], Type::bf16, false}, in, nullptr, size);
    loop.backward(kind, {&both[x.size() + i], Type::bf16, false}, {&dy[i], Type::bf16}, in, nullptr, size);
  }
  for (bf16& y : both)
    if (std::isnan(float(y))) y = bf16(std::numeric_limits<float>::quiet_NaN());
  return both;
}

TEST(Precision, of_bf16_depends_on_neither_the_instruction_set_nor_the_rows_length) {
  for (const Activation kind :
       {Activation::gelu, Activation::gelu_erf, Activation::quick_gelu, Activation::silu}) {
    const std::vector<bf16> right = results(InstructionSet::generic, kind, 0x10000);
    for (const InstructionSet set : all_here())
      for (const std::size_t n : {std::size_t{37}, std::size_t{96}, std::size_t{0x10000}}) {
        const std::vector<bf16> other = results(set, kind, n);
        for (std::size_t i = 0; i < right.size(); ++i)
          ASSERT_EQ(right[i].bits, other[i].bits) << name(set) << ", rows of " << n << ", result " << i;
      }
  }
}

}  // namespace
}  // namespace weft::fast
