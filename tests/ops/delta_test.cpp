// Filters over a few steps and the gated delta rule: written out, against differences, and what they refuse.
#include "weft/ops/delta.h"

#include <cmath>

#include "tests/ops/fixture.h"

namespace weft {
namespace {

class Delta : public Ops {
 protected:
  static constexpr std::int64_t steps = 5, rows = 2, groups = 2, heads = 2, d = 3, d_value = 2;
  DeltaIn operands() {
    return {.q = random({steps, rows, groups, d}),
            .k = random({steps, rows, groups, d}),
            .v = random({steps, rows, groups, heads, d_value}),
            .decay = random({steps, rows, groups, heads}),
            .rate = random({steps, rows, groups, heads}),
            .speed = random({groups, heads}),
            .shift = random({groups, heads}),
            .scale = 0.5F};
  }
  DeltaIn state_space() {
    DeltaIn in = operands();
    in.rate = {};
    in.skip = random({groups, heads});
    return in;
  }
  DeltaGrads zeros_like(const DeltaIn& in) {
    return {.dq = zeros(in.q.shape()),
            .dk = zeros(in.k.shape()),
            .dv = zeros(in.v.shape()),
            .ddecay = zeros(in.decay.shape()),
            .drate = in.rate ? zeros(in.rate.shape()) : Tensor(),
            .dspeed = zeros(in.speed.shape()),
            .dshift = zeros(in.shift.shape()),
            .dskip = in.skip ? zeros(in.skip.shape()) : Tensor()};
  }
  void has_the_slopes_of_differences(const DeltaIn& in) {
    const Tensor probe = random(in.v.shape());
    const auto value = [&] { return probed(probe, ops::delta_rule(in)); };
    const DeltaGrads grads = zeros_like(in);
    ops::delta_rule_backward_into(grads, probe, in);
    const auto meets = [&](const Tensor& slope, const Tensor& of) {
      EXPECT_EQ(difference(numbers(slope), slopes(of, value), slope_near), "");
    };
    meets(grads.dq, in.q);
    meets(grads.dk, in.k);
    meets(grads.dv, in.v);
    meets(grads.ddecay, in.decay);
    meets(grads.dspeed, in.speed);
    meets(grads.dshift, in.shift);
    in.corrects() ? meets(grads.drate, in.rate) : meets(grads.dskip, in.skip);
  }
};

// Which is a sum of terms, whoever adds them.
TEST_F(Delta, goes_on_from_a_memory) {
  for (const DeltaIn& whole : {operands(), state_space()}) {
    const std::vector<double> all = numbers(ops::delta_rule(whole));
    const Tensor memory = zeros({rows, groups, heads, d, d_value});
    std::vector<double> parts;
    for (const auto& [first, count] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {2, 1}, {3, 2}}) {
      DeltaIn part = whole;
      for (Tensor* each : {&part.q, &part.k, &part.v, &part.decay, &part.rate})
        if (*each) *each = each->slice(0, first, count);
      part.memory = memory;
      for (const double x : numbers(ops::delta_rule(part))) parts.push_back(x);
    }
    EXPECT_EQ(difference(parts, all, f32_near), "");
    DeltaIn late = whole;
    late.memory = memory;
    EXPECT_NE(difference(numbers(ops::delta_rule(late)), all, f32_near), "");
  }
}

TEST_F(Delta, filters_see_the_step_and_those_before_it) {
  const Tensor x = holding({3, 1, 1, 2}, {1, 10, 2, 20, 3, 30});
  const Tensor weight = holding({1, 2, 2}, {0.5, 1, 0, -1});
  const auto silu = [](double sum) { return sum / (1 + std::exp(-sum)); };
  EXPECT_EQ(
      difference(numbers(ops::convolve(x, {weight})),
                 std::vector<double>{silu(1), silu(-10), silu(2.5), silu(-20), silu(4), silu(-30)}, f32_near),
      "");
}

TEST_F(Delta, filters_have_the_slopes_of_differences) {
  const Tensor x = random({6, 2, 2, 3}), weight = random({2, 3, 3}), bias = random({2, 3}),
               probe = random({6, 2, 2, 3});
  for (const Filters& filters : {Filters{weight}, Filters{weight, bias}}) {
    const auto value = [&] { return probed(probe, ops::convolve(x, filters)); };
    const ConvolveGrads grads{zeros(x.shape()), zeros(weight.shape()),
                              filters.bias ? zeros(bias.shape()) : Tensor()};
    ops::convolve_backward_into(grads, probe, x, filters);
    EXPECT_EQ(difference(numbers(grads.dx), slopes(x, value), slope_near), "");
    EXPECT_EQ(difference(numbers(grads.dweight), slopes(weight, value), slope_near), "");
    if (filters.bias) {
      EXPECT_EQ(difference(numbers(grads.dbias), slopes(bias, value), slope_near), "");
    }
  }
}

TEST_F(Delta, filters_add_their_bias_before_silu) {
  const Tensor x = holding({2, 1, 1, 1}, {1, 3}), weight = holding({1, 1, 1}, {2});
  const auto silu = [](double sum) { return sum / (1 + std::exp(-sum)); };
  EXPECT_EQ(difference(numbers(ops::convolve(x, {weight, holding({1, 1}, {-4})})),
                       std::vector<double>{silu(-2), silu(2)}, f32_near),
            "");
}

/// What is written under a key of length 1 at full rate is what that key says, whatever it said before.
TEST_F(Delta, corrects_what_a_key_says) {
  const Tensor key = holding({2, 1, 1, 2}, {0.6, 0.8, 0.6, 0.8});
  const DeltaIn in{.q = key,
                   .k = key,
                   .v = holding({2, 1, 1, 1, 1}, {7, -2}),
                   .decay = holding({2, 1, 1, 1}, {0, 0}),
                   .rate = holding({2, 1, 1, 1}, {40, 40}),
                   .speed = holding({1, 1}, {0}),
                   .shift = holding({1, 1}, {0}),
                   .scale = 1};
  EXPECT_EQ(difference(numbers(ops::delta_rule(in)), std::vector<double>{7, -2}, f32_near), "");
}

/// Half of it is gone at the next step where e^speed softplus(decay + shift) is log 2, and a key at a right
/// angle changes nothing.
TEST_F(Delta, forgets_by_its_decay) {
  const DeltaIn in{.q = holding({2, 1, 1, 2}, {1, 0, 1, 0}),
                   .k = holding({2, 1, 1, 2}, {1, 0, 0, 1}),
                   .v = holding({2, 1, 1, 1, 1}, {8, 5}),
                   .decay = holding({2, 1, 1, 1}, {0.25, 0.25}),
                   .rate = holding({2, 1, 1, 1}, {0, 0}),
                   .speed = holding({1, 1}, {0}),
                   .shift = holding({1, 1}, {-0.25}),
                   .scale = 2};
  EXPECT_EQ(difference(numbers(ops::delta_rule(in)), std::vector<double>{8, 4}, f32_near), "");
}

/// t = log 2 at every step, so that half is left of what was there, and log 2 of a value is written.
TEST_F(Delta, state_spaces_add_and_skip) {
  const Tensor ones = holding({2, 1, 1, 1}, {1, 1});
  const DeltaIn in{.q = ones,
                   .k = ones,
                   .v = holding({2, 1, 1, 1, 1}, {4, 6}),
                   .decay = holding({2, 1, 1, 1}, {0.25, 0.25}),
                   .speed = holding({1, 1}, {0}),
                   .shift = holding({1, 1}, {-0.25}),
                   .skip = holding({1, 1}, {10})};
  const double t = std::log(2.0);
  EXPECT_EQ(difference(numbers(ops::delta_rule(in)), std::vector<double>{4 * t + 40, 8 * t + 60}, f32_near),
            "");
}

TEST_F(Delta, has_the_slopes_of_differences) { has_the_slopes_of_differences(operands()); }
TEST_F(Delta, state_spaces_have_the_slopes_of_differences) { has_the_slopes_of_differences(state_space()); }

TEST_F(Delta, adds_to_gradients_of_weights) {
  const DeltaIn in = operands();
  const Tensor probe = random(in.v.shape());
  const DeltaGrads once = zeros_like(in), twice = zeros_like(in);
  ops::delta_rule_backward_into(once, probe, in);
  for (int i = 0; i < 2; ++i) ops::delta_rule_backward_into(twice, probe, in);
  const auto doubled = [](const Tensor& x) {
    std::vector<double> out = numbers(x);
    for (double& each : out) each *= 2;
    return out;
  };
  EXPECT_EQ(difference(numbers(twice.dspeed), doubled(once.dspeed), f32_near), "");
  EXPECT_EQ(difference(numbers(twice.dshift), doubled(once.dshift), f32_near), "");
  EXPECT_EQ(numbers(twice.dq), numbers(once.dq));
}

TEST_F(Delta, says_what_does_not_fit) {
  EXPECT_EQ(refused([&] {
              (void)ops::convolve(random({2, 1, 2, 3}), {random({2, 4, 4})});
            }),
            "convolve: weight [2, 4, 4] has no filter for each channel of x [2, 1, 2, 3]");
  EXPECT_EQ(refused([&] {
              (void)ops::convolve(random({2, 1, 2, 3}), {random({2, 3, 9})});
            }),
            "convolve: filters of 9 taps, and 8 is the most");
  DeltaIn in = operands();
  in.q = in.k = random({steps, rows, groups, 257});
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }),
            "delta_rule: keys of 257 channels, and 256 is the most");
  in = operands();
  in.k = random({steps, rows, groups, d + 1});
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }), "delta_rule: k is [5, 2, 2, 4], not [5, 2, 2, 3]");
  in = operands();
  in.q = random({steps, rows, groups + 1, d});
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }), "delta_rule: q is [5, 2, 3, 3], not [5, 2, 2, 3]");
  in = operands();
  in.speed = random({groups});
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }), "delta_rule: speed is [2], not [2, 2]");
  in = state_space();
  in.rate = in.decay;
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }),
            "delta_rule: both rates, which correct, and skips, which are a state space's");
  in.rate = in.skip = {};
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }),
            "delta_rule: neither rates, which correct, nor skips, which are a state space's");
  in = state_space();
  in.skip = random({groups});
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }), "delta_rule: skip is [2], not [2, 2]");
  in = operands();
  in.memory = zeros({rows, groups, heads, d, d});
  EXPECT_EQ(refused([&] { (void)ops::delta_rule(in); }),
            "delta_rule: memory is [2, 2, 2, 3, 3], not [2, 2, 2, 3, 2]");
  in.memory = zeros({rows, groups, heads, d, d_value});
  EXPECT_EQ(refused([&] { ops::delta_rule_backward_into(zeros_like(in), in.v, in); }),
            "delta_rule_backward: a memory to begin with, and gradients are of whole sequences");
  const Tensor x = random({2, 1, 2, 3}), weight = random({2, 3, 4}), bias = random({2, 3});
  EXPECT_EQ(refused([&] {
              (void)ops::convolve(x, {weight, random({3})});
            }),
            "convolve: bias is [3], not [2, 3]");
  EXPECT_EQ(refused([&] {
              ops::convolve_backward_into({zeros(x.shape()), zeros(weight.shape())}, x, x, {weight, bias});
            }),
            "convolve_backward: a bias without dbias");
}

}  // namespace
}  // namespace weft
