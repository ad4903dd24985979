// Updates against their formulas, step by step.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/adam.h"

namespace weft {
namespace {

using Adam = Ops;

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
  EXPECT_EQ(said({state.master, state.m, zeros({4}, Dtype::f16), {}}, random({4})),
            "adam: v is f16, not f32");
  EXPECT_EQ(said({state.master, {}, state.v, {}}, random({4})), "adam: m has no memory");
  EXPECT_EQ(said(state, random({4}), {.correction1 = 0}), "adam: bias corrections 0 and 1 must be positive");
  EXPECT_EQ(said(state, random({4, 2}).at(1, 0)),
            "adam: grad [4] with strides [2] has gaps; copy it with ops::contiguous first");
  EXPECT_EQ(refused([&] {
              ops::sgd_into({state.master, {}, {}}, random({4}), {});
            }),
            "sgd: a momentum of 0.9 needs memory to keep it in");
}

}  // namespace
}  // namespace weft
