// Activations against known values, and their derivatives against differences.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/activation.h"
#include "weft/tensor/kinds.h"

namespace weft {
namespace {

using ActivationOps = Ops;

constexpr std::array smooth{Activation::identity,   Activation::gelu, Activation::gelu_erf,
                            Activation::quick_gelu, Activation::silu, Activation::tanh,
                            Activation::sigmoid};

TEST_F(ActivationOps, give_known_values) {
  const Tensor x = holding({3}, {-1, 0, 2});
  const auto gives = [&](Activation kind, const std::vector<double>& expected) {
    return difference(numbers(ops::activation(x, {}, kind)), expected, {1e-6, 1e-7});
  };
  // gelu(x) = x Phi(x): Phi(-1) = 0.15865525, Phi(2) = 0.97724987
  EXPECT_EQ(gives(Activation::gelu_erf, {-0.15865525, 0, 1.95449974}), "");
  EXPECT_EQ(gives(Activation::gelu, {-0.15880801, 0, 1.95459769}), "");
  EXPECT_EQ(gives(Activation::quick_gelu, {-1 / (1 + std::exp(1.702)), 0, 2 / (1 + std::exp(-3.404))}), "");
  EXPECT_EQ(gives(Activation::silu, {-1 / (1 + std::exp(1.0)), 0, 2 / (1 + std::exp(-2.0))}), "");
  EXPECT_EQ(gives(Activation::relu, {0, 0, 2}), "");
  EXPECT_EQ(gives(Activation::squared_relu, {0, 0, 4}), "");
  EXPECT_EQ(gives(Activation::identity, {-1, 0, 2}), "");
  EXPECT_EQ(gives(Activation::tanh, {std::tanh(-1), 0, std::tanh(2)}), "");
  EXPECT_EQ(gives(Activation::sigmoid, {1 / (1 + std::exp(1.0)), 0.5, 1 / (1 + std::exp(-2.0))}), "");
}

TEST_F(ActivationOps, have_the_derivatives_that_differences_show) {
  for (const Activation kind : smooth) {
    const Tensor x = random({3, 5}, Dtype::f32, 3);
    const Tensor bias = random({5});
    const Tensor dy = random({3, 5});
    const Tensor dx = ops::activation_backward(dy, x, bias, kind);
    const auto f = [&] { return probed(dy, ops::activation(x, bias, kind)); };
    EXPECT_EQ(difference(numbers(dx), slopes(x, f), slope_near), "") << words(kind)[std::size_t(kind)];
  }
}

TEST_F(ActivationOps, with_a_corner_have_derivatives_beside_it) {
  for (const Activation kind : {Activation::relu, Activation::squared_relu}) {
    const Tensor x = holding({4}, {-2, -0.5, 0.5, 2});
    const Tensor dy = random({4});
    const auto f = [&] { return probed(dy, ops::activation(x, {}, kind)); };
    EXPECT_EQ(difference(numbers(ops::activation_backward(dy, x, {}, kind)), slopes(x, f), slope_near), "");
  }
}

TEST_F(ActivationOps, when_gated_are_the_activation_times_the_other_half) {
  const Tensor x = random({3, 8}, Dtype::f32, 2);
  const Tensor gate = ops::activation(x.slice(1, 0, 4), {}, Activation::silu);
  std::vector<double> expected = numbers(gate);
  const std::vector<double> up = numbers(x.slice(1, 4, 4));
  for (std::size_t i = 0; i < up.size(); ++i) expected[i] *= up[i];
  EXPECT_EQ(difference(numbers(ops::gated(x, {}, {Activation::silu})), expected, f32_near), "");
}

TEST_F(ActivationOps, when_gated_have_the_derivatives_that_differences_show) {
  for (const Activation kind : smooth) {
    const Tensor x = random({2, 6}, Dtype::f32, 2);
    const Tensor bias = random({6});
    const Tensor dy = random({2, 3});
    const auto f = [&] { return probed(dy, ops::gated(x, bias, {kind})); };
    EXPECT_EQ(difference(numbers(ops::gated_backward(dy, x, bias, {kind})), slopes(x, f), slope_near), "");
  }
}

TEST_F(ActivationOps, keep_gates_within_their_limit) {
  const Gate gate{.f = Activation::quick_gelu, .limit = 2, .offset = 1};
  const Tensor x = holding({2, 4}, {3, 1, 5, -7, 1, -9, 0.5, 1.5});
  const auto quick = [](double v) { return v / (1 + std::exp(-1.702 * v)); };
  const std::vector<double> expected{quick(2) * 3, quick(1) * -1, quick(1) * 1.5, quick(-9) * 2.5};
  EXPECT_EQ(difference(numbers(ops::gated(x, {}, gate)), expected, f32_near), "");
  const Tensor dy = holding({2, 2}, {1, 1, 1, 1});
  const auto f = [&] { return probed(dy, ops::gated(x, {}, gate)); };
  EXPECT_EQ(difference(numbers(ops::gated_backward(dy, x, {}, gate)), slopes(x, f), slope_near), "");
  const std::vector<double> slope = numbers(ops::gated_backward(dy, x, {}, gate));
  for (const std::size_t beyond : {0U, 2U, 3U}) EXPECT_EQ(slope[beyond], 0);
}

TEST_F(ActivationOps, say_what_does_not_fit) {
  const Tensor x = random({2, 5});
  EXPECT_EQ(refused([&] { (void)ops::gated(x, {}, {Activation::silu}); }),
            "gated: x [2, 5] has an odd last dimension; gate and up are its halves");
  EXPECT_EQ(refused([&] { (void)ops::activation(x, random({4}), Activation::silu); }),
            "activation: bias is [4], not [5]");
  EXPECT_EQ(refused([&] {
              (void)ops::activation_backward(random({5, 2}), x, {}, Activation::silu);
            }),
            "activation_backward: dy is [5, 2], not [2, 5]");
  EXPECT_EQ(refused([&] {
              (void)ops::gated_backward(x, random({2, 6}), {}, {Activation::silu});
            }),
            "gated_backward: dy is [2, 5], not [2, 3]");
  EXPECT_EQ(refused([&] {
              (void)ops::gated(random({2, 6}), {}, {.limit = 0});
            }),
            "gated: a gate's limit is 0, not above 0");
}

}  // namespace
}  // namespace weft
