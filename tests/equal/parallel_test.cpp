// Attention and MLPs beside each other, under every kind of cut: behind norms of their own as GPT-NeoX, and
// behind one as Command-R.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.cp = 2, .dp = 1}},
          {{.dp = 4, .zero = 1}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1},
          {{.tp = 2, .pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2}, 1}};
}

/// Of these some, where a sanitizer waits.
std::vector<Cut> some_cuts() { return some_of(cuts(), 4); }

ModelConfig beside_experts() {
  ModelConfig config = shape_of("mixture", 4);
  config.parallel_sublayers = ParallelSublayers::one_norm;
  complete(config);
  return config;
}

ModelConfig of_words_with_biases() {
  ModelConfig config = shape_of("neox", 4);
  config.logits_bias = true;
  config.project_bias = false;
  config.hidden_dropout = config.attention_dropout = 0.1;
  complete(config);
  return config;
}

}  // namespace

TEST(ParallelSublayers, train_as_on_one_rank) {
  for (const char* name : {"neox", "command"}) expect_steps_of_one_rank(shape_of(name, 4), some_cuts());
  expect_steps_of_one_rank(of_words_with_biases(), some_cuts());
}

TEST(ParallelSublayers, have_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : {"neox", "command"}) expect_bits_of_one_rank(shape_of(name, 4), some_cuts());
}

TEST(ParallelSublayers, may_be_experts) {
  const std::vector<Cut> all{{{.tp = 2, .dp = 1, .sequence = true}}, {{.dp = 2, .ep = 2}}};
  expect_bits_of_one_rank(beside_experts(), all);
}

/// Every guess at a further token makes logits, and so a gradient of their biases.
TEST(ParallelSublayers, may_guess_further_tokens_by_biased_logits) {
  ModelConfig config = shape_of("neox", 2);
  config.logits_bias = true;
  config.ahead.depths = 2;
  complete(config);
  const std::vector<Cut> all{{{.dp = 2}, 1}, {{.tp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
  expect_bits_of_one_rank(config, all);
  expect_steps_of_one_rank(config, all);
}

TEST(ParallelSublayers, forget_what_they_compute_again) {
  for (const char* name : {"neox", "command"}) {
    ModelConfig config = shape_of(name, 4);
    const Curve kept = alone(config);
    config.recompute = {.what = Recompute::selective,
                        .modules = {RecomputeModule::norm, RecomputeModule::mlp}};
    EXPECT_EQ(alone(config).losses, kept.losses) << name;
    config.recompute = {.what = Recompute::full};
    EXPECT_EQ(alone(config).losses, kept.losses) << name;
  }
}

// One norm and two begin alike, and part by what they learn: a sanitizer's two steps are too few.
TEST(ParallelSublayers, are_those_that_were_asked_for) {
  ModelConfig config = shape_of("neox", 4);
  std::vector<std::vector<double>> losses;
  for (const auto one :
       {ParallelSublayers::own_norms, ParallelSublayers::none, ParallelSublayers::one_norm}) {
    config.parallel_sublayers = one;
    losses.push_back(train(config, {.parallel = {.dp = 1}, .micro_batch = 8, .steps = 4}).losses);
  }
  expect_all_differ(losses);
}

TEST(ParallelSublayers, hold_what_the_counting_device_counts) {
  for (const char* name : {"neox", "command"})
    expect_counted_memory(shape_of(name, 4), {cuts()[1], cuts()[2], cuts()[6]});
}

TEST(ParallelSublayers, show_planted_faults) {
  const ModelConfig config = shape_of("command", 4);
  const Curve one = alone(config);
  Cut cut = with_few_steps(cuts()[2]);
  cut.fault = Fault::sequence_parts_not_added;
  EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "");
}
