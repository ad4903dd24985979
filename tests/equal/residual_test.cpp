// A residual stream in f32 beside products in half the bits: under every kind of cut, between stages, and
// where layers are computed again.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"
#include "tests/support/placed.h"

using namespace weft;
using namespace weft::testing;

namespace {

ModelConfig wide(const char* name, int layers = 4) {
  ModelConfig config = shape_of(name, layers);
  config.precision = Precision::bf16;
  config.residual_in_f32 = true;
  return config;
}
/// What dropout rounds on its way back is rounded by norms there.
ModelConfig without_dropout(ModelConfig config) {
  config.hidden_dropout = config.attention_dropout = 0;
  return config;
}

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2}, 1},
          {{.dp = 4, .zero = 1}, 1},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1},
          {{.pp = 2, .dp = 2, .schedule = "gpipe", .zero = 2}, 1}};
}
std::vector<Cut> some_cuts() { return some_of(cuts(), 4); }

}  // namespace

TEST(ResidualInF32, trains_as_on_one_rank) {
  for (const char* name : {"gpt2", "llama", "bert", "t5", "gemma", "olmo", "neox", "command"})
    expect_steps_of_one_rank(wide(name), some_cuts());
}

TEST(ResidualInF32, trains_without_dropout_as_on_one_rank) {
  for (const char* name : {"gpt2", "t5", "olmo"})
    expect_steps_of_one_rank(without_dropout(wide(name)), {cuts()[1], cuts()[3], cuts()[6], cuts()[7]});
}

TEST(ResidualInF32, trains_state_spaces_as_on_one_rank) {
  expect_steps_of_one_rank(wide("hybrid"), {cuts()[1], cuts()[6]});
}

TEST(ResidualInF32, has_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : {"gpt2", "t5", "olmo"}) {
    const ModelConfig config = wide(name);
    const Curve one = alone(config, true);
    for (const Cut& cut : some_cuts())
      expect_same_bits(train(config, with_few_steps(cut, true)), one, name_of(cut));
    const ModelConfig plain = without_dropout(config);
    expect_same_bits(train(plain, with_few_steps(cuts()[6], true)), alone(plain, true), name);
  }
}

// What is rounded otherwise chooses other experts.
TEST(ResidualInF32, has_the_bits_of_one_rank_where_ranks_share_experts) {
  const ModelConfig config = wide("mixture", 2);
  Cut shared = cuts()[7];
  shared.parallel.ep = 2;
  expect_same_bits(train(config, with_few_steps(shared, true)), alone(config, true), name_of(shared));
}

TEST(ResidualInF32, has_the_same_bits_where_layers_are_computed_again) {
  for (const char* name : {"gpt2", "olmo", "t5"}) {
    ModelConfig config = wide(name);
    const Cut cut = with_few_steps(cuts()[6]);
    const Curve whole = bits_of(config, cut);
    for (const RecomputeMethod method : {RecomputeMethod::uniform, RecomputeMethod::block}) {
      config.recompute = {.what = Recompute::full, .method = method};
      EXPECT_EQ(bits_of(config, cut), whole) << name;
    }
    config.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::norm}};
    EXPECT_EQ(bits_of(config, cut), whole) << name;
  }
}

TEST(ResidualInF32, holds_what_the_counting_device_counts) {
  for (const char* name : {"gpt2", "olmo", "t5", "bert"})
    expect_counted_memory(wide(name), {cuts()[1], cuts()[4], cuts()[6], cuts()[7]});
  ModelConfig config = without_dropout(wide("llama"));
  expect_counted_memory(config, {cuts()[1], cuts()[7]});
  config.recompute = {.what = Recompute::full};
  expect_counted_memory(config, {cuts()[1], cuts()[6]});
}

// Its gradients are, too: tests/nn/residual_test.cpp. Of few layers either may be nearer by chance.
TEST(ResidualInF32, trains_nearer_to_f32) {
  double with = 0, without = 0;
  for (const auto& [name, layers] : {std::pair{"gpt2", 24}, {"llama", 24}, {"llama", 48}}) {
    ModelConfig config = without_dropout(wide(name, layers));
    const auto parted = [&](Precision precision, bool in_f32) {
      config.precision = precision;
      config.residual_in_f32 = in_f32;
      return alone(config).losses;
    };
    const std::vector<double> exact = parted(Precision::f32, false), near = parted(Precision::bf16, true),
                              far = parted(Precision::bf16, false);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      with += std::abs(near[i] - exact[i]);
      without += std::abs(far[i] - exact[i]);
    }
  }
  EXPECT_LT(with, without);
}

// After a sanitizer's two steps rounding would hide them.
TEST(ResidualInF32, shows_planted_faults) {
  const ModelConfig config = wide("gpt2");
  const Curve one = train(config, {.parallel = {.dp = 1}, .micro_batch = 8, .steps = 4});
  for (const Fault fault : {Fault::sequence_parts_not_added, Fault::weight_gradient_dropped}) {
    Cut cut = cuts()[1];
    cut.steps = 4;
    cut.fault = fault;
    EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "");
  }
}
