// Updates against their formulas, step by step.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

class Adam : public Ops {
 protected:
  /// Zeros of any type.
  Tensor narrow(const Shape& shape, Dtype dtype) { return ops::zeros(device(), shape, dtype); }
};

struct Plain {
  double master = 0, m = 0, v = 0;
};

/// One step as the paper writes it: bias-corrected moments, decay beside the gradient or in it.
Plain stepped(Plain at, double grad, int step, const AdamArgs& how) {
  const double decay = how.decay;
  const double rate = how.rate;
  const double g = grad * double(how.grad_scale) + (how.decoupled ? 0 : decay * at.master);
  const double b1 = how.beta1;
  const double b2 = how.beta2;
  Plain out{at.master, b1 * at.m + (1 - b1) * g, b2 * at.v + (1 - b2) * g * g};
  const double m = out.m / (1 - std::pow(b1, step));
  const double v = out.v / (1 - std::pow(b2, step));
  if (how.decoupled) out.master -= rate * decay * at.master;
  out.master -= rate * m / (std::sqrt(v) + double(how.epsilon));
  return out;
}

TEST_F(Adam, steps_as_the_formulas_say) {
  for (const bool decoupled : {false, true}) {
    const AdamState state{random({6}), zeros({6}), zeros({6}), zeros({6}, Dtype::bf16)};
    std::vector<Plain> plain;
    for (const double x : numbers(state.master)) plain.push_back({x});
    AdamArgs how{.rate = 0.1F, .beta2 = 0.95F, .decay = 0.2F, .grad_scale = 0.5F, .decoupled = decoupled};
    for (int step = 1; step <= 4; ++step) {
      const Tensor grad = random({6});
      how.correction1 = float(1 - std::pow(double(how.beta1), step));
      how.correction2 = float(1 - std::pow(double(how.beta2), step));
      ops::adam_into(state, grad, how);
      const std::vector<double> g = numbers(grad);
      for (std::size_t i = 0; i < 6; ++i) plain[i] = stepped(plain[i], g[i], step, how);
    }
    std::vector<double> expected;
    for (const Plain& p : plain) expected.push_back(p.master);
    EXPECT_EQ(difference(numbers(state.master), expected, {1e-5, 1e-6}), "");
    EXPECT_EQ(difference(numbers(state.copy), expected, {2 * rounding(Dtype::bf16), 0}), "");
  }
}

TEST_F(Adam, writes_the_copy_from_the_master_as_stored) {
  const AdamState state{random({40}), zeros({40}), zeros({40}), zeros({40}, Dtype::bf16)};
  ops::adam_into(state, random({40}), {.rate = 0.01F});
  std::vector<double> rounded;
  for (const double x : numbers(state.master)) rounded.push_back(double(float(bf16(float(x)))));
  EXPECT_EQ(numbers(state.copy), rounded);
}

TEST_F(Adam, with_momentum_only_steps_as_the_formulas_say) {
  const SgdState state{holding({2}, {1, -2}), zeros({2}), {}};
  const SgdArgs how{.rate = 0.5F, .momentum = 0.5F, .decay = 0.25F, .grad_scale = 2};
  ops::sgd_into(state, holding({2}, {1, 1}), how);  // g = 2.25, 1.5
  EXPECT_EQ(numbers(state.master), (std::vector<double>{1 - 1.125, -2 - 0.75}));
  ops::sgd_into(state, holding({2}, {0, 0}), how);  // g = -0.03125, -0.6875
  EXPECT_EQ(numbers(state.momentum), (std::vector<double>{1.125 - 0.03125, 0.75 - 0.6875}));
  const SgdState bare{holding({1}, {1}), {}, {}};
  ops::sgd_into(bare, holding({1}, {4}), {.rate = 0.25F, .momentum = 0});
  EXPECT_EQ(number(bare.master), 0);
}

TEST_F(Adam, says_what_does_not_fit) {
  const AdamState state{random({4}), zeros({4}), zeros({4}), {}};
  const auto said = [&](const AdamState& s, const Tensor& grad, const AdamArgs& how = {}) {
    return refused([&] { ops::adam_into(s, grad, how); });
  };
  EXPECT_EQ(said(state, random({3})), "adam: grad is [3], not [4]");
  EXPECT_EQ(said({random({4}, Dtype::bf16), state.m, state.v, {}}, random({4})),
            "adam: master is bf16, not f32");
  EXPECT_EQ(said({state.master, state.m, narrow({4}, Dtype::f8e4m3), {}}, random({4})),
            "adam: v is f8e4m3, and f32, bf16, f16 or f8e5m2 is expected");
  EXPECT_EQ(said({state.master, {}, state.v, {}}, random({4})), "adam: m has no memory");
  EXPECT_EQ(said(state, random({4}), {.correction1 = 0}), "adam: bias corrections 0 and 1 must be positive");
  EXPECT_EQ(said(state, random({4, 2}).at(1, 0)),
            "adam: grad [4] with strides [2] has gaps; copy it with ops::contiguous first");
  EXPECT_EQ(refused([&] {
              ops::sgd_into({state.master, {}, {}}, random({4}), {});
            }),
            "sgd: a momentum of 0.9 needs memory to keep it in");
}

// With a beta of 0.999 and hardly a gradient (elements of one code would else go one way) a moment falls by a
// thousandth a step, a fourth of half a bf16's step.
TEST_F(Adam, keeps_small_changes_of_moments_of_fewer_bits) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f8e5m2}) {
    const AdamState state{zeros({512}), narrow({512}, dtype), narrow({512}, dtype), {}};
    AdamArgs how{.beta1 = 1, .beta2 = 0};
    ops::adam_into(state, random({512}, Dtype::f32, 0.5), how);  // v = g^2
    const auto mean = [&] {
      double sum = 0;
      for (const double x : numbers(state.v)) sum += dtype == Dtype::bf16 ? x : x * x;
      return sum;
    };
    const double before = mean();
    how.beta2 = 0.999F;
    for (std::uint32_t step = 0; step < 300; ++step) {
      how.dice = step;
      ops::adam_into(state, random({512}, Dtype::f32, 0.05), how);
    }
    // 512 elements that wander by a tenth each.
    EXPECT_NEAR(mean() / before, std::pow(0.999, 300), 0.05) << name(dtype);
  }
}

TEST_F(Adam, goes_by_the_sign_of_momentum_and_not_at_all_by_zero) {
  const SgdState state{holding({3}, {1, -2, 4}), holding({3}, {0.5, 0, 0}), {}};
  const LionArgs how{.rate = 0.5F, .beta1 = 0.5F, .beta2 = 0.75F, .decay = 0.25F, .grad_scale = 2};
  ops::lion_into(state, holding({3}, {-1, 0.25, 0}), how);
  EXPECT_EQ(numbers(state.master), (std::vector<double>{0.875 + 0.5, -1.75 - 0.5, 3.5}));
  EXPECT_EQ(numbers(state.momentum), (std::vector<double>{0.375 - 0.5, 0.125, 0}));
}

TEST_F(Adam, in_two_halves_is_adam) {
  const Tensor g = random({9});
  const AdamState whole{random({9}), zeros({9}), zeros({9}), {}};
  const AdamState halves{zeros({9}), zeros({9}), zeros({9}), zeros({9}, Dtype::bf16)};
  halves.master.device().kernels().copy(halves.master, whole.master);
  const AdamArgs how{.rate = 0.1F, .decay = 0.2F, .correction1 = 0.1F, .correction2 = 0.001F};
  ops::adam_into(whole, g, how);
  ops::adam_direction_into({halves.master, halves.m, halves.v, {}}, g, how);
  ops::descend_into(halves.master, halves.copy, g, {.rate = how.rate});
  EXPECT_EQ(difference(numbers(halves.master), numbers(whole.master), f32_near), "");
  EXPECT_EQ(difference(numbers(halves.v), numbers(whole.v), f32_near), "");
}

TEST_F(Adam, goes_as_far_as_the_device_says) {
  const Tensor master = holding({2}, {1, 2}), copy = zeros({2}, Dtype::bf16);
  ops::descend_into(master, copy, holding({2}, {4, -8}), {.rate = 0.25F, .by = holding({1}, {0.5})});
  EXPECT_EQ(numbers(master), (std::vector<double>{0.5, 3}));
  EXPECT_EQ(numbers(copy), (std::vector<double>{0.5, 3}));
}

TEST_F(Adam, takes_signs_highest_first_and_counts_zero_as_positive) {
  const Tensor x = holding({8}, {1, -2, 0, 4, -5, -6, -7, 8}), bits = zeros({1}, Dtype::u8);
  ops::take_signs_into(bits, x, holding({1}, {3}));
  EXPECT_EQ(numbers(bits), (std::vector<double>{0b10110001}));
  EXPECT_EQ(numbers(x), (std::vector<double>{-2, 1, -3, 1, -2, -3, -4, 5}));
  ops::add_signs_into(x, bits, holding({1}, {6}), 2);
  EXPECT_EQ(numbers(x), (std::vector<double>{1, -2, 0, 4, -5, -6, -7, 8}));
}

TEST_F(Adam, says_what_has_no_signs_or_direction) {
  EXPECT_EQ(refused([&] { ops::take_signs_into(zeros({1}, Dtype::u8), zeros({9}), zeros({1})); }),
            "take signs: x has 9 elements, which are no whole bytes of signs");
  EXPECT_EQ(refused([&] { ops::add_signs_into(zeros({16}), zeros({1}, Dtype::u8), zeros({1})); }),
            "add signs: bits is [1], not [2]");
  EXPECT_EQ(refused([&] { ops::add_signs_into(zeros({8}), zeros({1}, Dtype::u8), zeros({2})); }),
            "add signs: size is [2], not [1]");
  EXPECT_EQ(refused([&] {
              ops::lion_into({zeros({2}), {}, {}}, zeros({2}), {});
            }),
            "lion: momentum has no memory");
  EXPECT_EQ(refused([&] {
              ops::adam_direction_into({zeros({2}), zeros({2}, Dtype::bf16), zeros({2}), {}}, zeros({2}), {});
            }),
            "adam direction: m is bf16, not f32");
  EXPECT_EQ(refused([&] { ops::descend_into(zeros({2}), {}, zeros({2}, Dtype::bf16), {}); }),
            "descend: x is bf16, not f32");
  EXPECT_EQ(refused([&] { ops::descend_into(zeros({2}), {}, zeros({2}), {.by = zeros({2})}); }),
            "descend: by is [2], not [1]");
}

}  // namespace
}  // namespace weft
