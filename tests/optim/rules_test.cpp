// Optimizers against plain loops in double, and how much they keep.
#include "weft/optim/rules.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/optim/one_tensor.h"
#include "tests/support/compare.h"
#include "tests/support/refused.h"
#include "weft/base/random.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<float> drawn(std::int64_t n, std::uint64_t which) {
  const Draw draw({.seed = 3, .purpose = Purpose::test, .step = which});
  std::vector<float> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(float(2 * double(draw.uniform(std::uint64_t(i))) - 1));
  return out;
}

double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

/// LAMB as the words of its settings say it.
struct PlainLamb {
  std::vector<double> w, m, v;
  void step(const std::vector<float>& g, double rate, double decay, int t) {
    std::vector<double> u(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * double(g[i]);
      v[i] = 0.999 * v[i] + 0.001 * double(g[i]) * double(g[i]);
      u[i] = m[i] / (std::sqrt(v[i]) + 1e-8) + decay * w[i];
    }
    const double ratio = std::clamp(norm_of(w) / norm_of(u), 0.01, 10.0);
    const double length = rate * ratio * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= length * u[i];
  }
};

/// What moments of so many bits leave of 200 steps towards 0.5, from -1 to 1, through noise.
double distance_left(MomentType type) {
  OptimizerConfig config{.beta2 = 0.99, .any_moment_type = true, .first_moment = type, .second_moment = type};
  OneTensor ours({256}, drawn(256, 0), config);
  for (int t = 1; t <= 200; ++t) {
    std::vector<float> g = drawn(256, std::uint64_t(t));
    const std::vector<double> w = ours.weight();
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = float(0.01 * (w[i] - 0.5) + 0.002 * double(g[i]));
    ours.step(g, {.rate = 0.02, .ends_rate = 0.02});
  }
  std::vector<double> left = ours.weight();
  for (double& w : left) w -= 0.5;
  return norm_of(left) / 16;
}

}  // namespace

TEST(Lamb, is_the_plain_loop) {
  PlainLamb plain;
  for (const float x : drawn(60, 0)) plain.w.push_back(double(x));
  plain.m = plain.v = std::vector<double>(60);
  OneTensor ours({6, 10}, drawn(60, 0), {.kind = OptimizerKind::lamb});
  for (int t = 1; t <= 10; ++t) {
    plain.step(drawn(60, std::uint64_t(t)), 0.02, 0.1, t);
    ours.step(drawn(60, std::uint64_t(t)), {.rate = 0.02, .ends_rate = 0.02, .decay = 0.1});
  }
  EXPECT_EQ(difference(ours.weight(), plain.w, {1e-5, 1e-6}), "");
}

TEST(Lamb, goes_the_usual_length_where_a_tensor_is_zero) {
  OneTensor ours({4}, {0, 0, 0, 0}, {.kind = OptimizerKind::lamb, .lamb = {.bias_correction = false}});
  ours.step({1, 1, 1, 1}, {.rate = 0.5});
  for (const double w : ours.weight()) EXPECT_NEAR(w, -0.5 * 0.1 / std::sqrt(0.001), 1e-5);
}

// Moments in 16 or 8 bits stand for the same means, so weights come as near.
TEST(Moments, of_fewer_bits_lead_as_near) {
  const double f32 = distance_left(MomentType::fp32);
  EXPECT_LT(f32, 0.2);
  for (const MomentType type : {MomentType::bf16, MomentType::fp16})
    EXPECT_NEAR(distance_left(type), f32, 0.05 * f32) << words(type)[std::size_t(type)];
  EXPECT_NEAR(distance_left(MomentType::fp8), f32, 0.2 * f32);
}

// A schedule's betas stand in the place of the configured ones, in every step by themselves.
TEST(Rules, that_follow_betas_take_those_of_the_step) {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::lion}) {
    EXPECT_TRUE(follows_betas(kind));
    const OptimizerConfig moved{
        .kind = kind, .beta1 = 0.6, .beta2 = 0.8, .lion = {.beta1 = 0.6, .beta2 = 0.8}};
    OneTensor told({6, 10}, drawn(60, 0), {.kind = kind}), usual({6, 10}, drawn(60, 0), {.kind = kind}),
        configured({6, 10}, drawn(60, 0), moved);
    for (int t = 1; t <= 3; ++t) {
      const std::vector<float> g = drawn(60, std::uint64_t(t));
      told.step(g, {.rate = 0.01, .ends_rate = 0.01, .betas = Betas{0.6, 0.8}});
      usual.step(g, {.rate = 0.01, .ends_rate = 0.01});
      configured.step(g, {.rate = 0.01, .ends_rate = 0.01});
    }
    EXPECT_EQ(told.weight(), configured.weight());
    EXPECT_NE(told.weight(), usual.weight());
  }
}

TEST(Muon, leaves_vectors_to_adam_or_to_lion) {
  const auto steps = [](OptimizerKind kind, MuonOthers others) {
    OneTensor ours({60}, drawn(60, 0),
                   {.kind = kind, .lion = {.beta1 = 0.8, .beta2 = 0.7}, .muon = {.others = others}});
    for (int t = 1; t <= 3; ++t)
      ours.step(drawn(60, std::uint64_t(t)),
                {.rate = 0.01, .ends_rate = 0.01, .decay = 0.1, .grad_scale = 0.5});
    return std::pair(ours.weight(), ours.state(".momentum"));
  };
  const auto beside_lion = steps(OptimizerKind::muon, MuonOthers::lion);
  EXPECT_EQ(beside_lion, steps(OptimizerKind::lion, MuonOthers::adam));
  EXPECT_EQ(steps(OptimizerKind::muon, MuonOthers::adam).first,
            steps(OptimizerKind::adam, MuonOthers::adam).first);
}

TEST(Rules, say_what_they_keep) {
  const auto kept = [](const OptimizerConfig& config) {
    double bytes = 0;
    const auto device = open_device("cpu", {.threads = 1});
    Parameter parameter = whole_parameter("w", {64}, {});
    Weights weights([&](const VisitParameter& visit) { visit(parameter); }, *device, Dtype::f32,
                    Weights::For::training);
    const auto rule = make_optimizer(weights, config);
    rule->each_state([&](const Held& held) { bytes += double(held.memory.bytes()) / 64; });
    return bytes;
  };
  for (const OptimizerKind kind :
       {OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lion, OptimizerKind::lamb})
    EXPECT_EQ(kept({.kind = kind}), rule_of(kind).state_bytes({.kind = kind})) << int(kind);
  const OptimizerConfig narrow{.first_moment = MomentType::bf16, .second_moment = MomentType::fp8};
  EXPECT_EQ(kept(narrow), 3);
  EXPECT_EQ(rule_of(OptimizerKind::adam).state_bytes(narrow), 3);
}

TEST(Rules, name_those_that_nobody_has_written) {
  EXPECT_EQ(refused([] { (void)rule_of(OptimizerKind::soap); }),
            "{optimizer.kind=soap}: weft has no such optimizer yet");
}
