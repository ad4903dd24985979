// Plans of steps that leave tokens or layers out, or take samples in pieces.
#include "tests/plan/planned.h"

using namespace weft;
using namespace weft::testing;

// Where a microbatch is a sample, pieces are microbatches: two of 12 tokens for each of 16.
TEST(Plan, counts_pieces_one_by_one_in_exact_mode) {
  const auto exact = [](TrainConfig& c) {
    c.model.exact = true;
    c.model.channels = 8;
    c.model.vocabulary = 64;
    c.eval.iterations = 0;
  };
  const Plan growing = plan_for(tiny({.dp = 1}, [&](TrainConfig& c) {
    exact(c);
    c.curriculum = {.rule = {.curve = data::LengthCurve::fixed_discrete, .lengths = {12, 16}, .until = {1}},
                    .form = data::ExcerptForm::reshape};
  }));
  const Plan whole = plan_for(tiny({.dp = 1}, exact)), pieces = plan_for(tiny({.dp = 1}, [&](TrainConfig&c) {
                                                         exact(c);
                                                         c.model.sequence = 12;
                                                         c.model.max_positions = 16;
                                                         c.batch.global = 32;
                                                       }));
  // A step of twice as many microbatches has one more sum that waits, whatever they hold.
  EXPECT_EQ(growing.kinds[0].memory.peak[std::size_t(Use::gradients)],
            pieces.kinds[0].memory.peak[std::size_t(Use::gradients)]);
  EXPECT_GT(growing.kinds[0].memory.total_peak, whole.kinds[0].memory.total_peak);
  EXPECT_GE(growing.kinds[0].memory.total_peak, pieces.kinds[0].memory.total_peak);
}

// Layers see 12 of 16 tokens, which ranks that share sequences bring together before them and behind them.
TEST(Plan, counts_tokens_that_pass_layers_by) {
  const auto drops = [](TrainConfig& c) {
    c.batch.micro = 8;
    c.model.token_drop = {.layers = {1, 2}, .least = 12, .most = 12, .steps = 1, .multiple = 4};
  };
  for (const ParallelConfig& parallel :
       {ParallelConfig{.dp = 1}, ParallelConfig{.tp = 2, .dp = 1, .sequence = true},
        ParallelConfig{.cp = 2, .dp = 1}, ParallelConfig{.tp = 2, .cp = 2, .dp = 1, .sequence = true}}) {
    expect_the_plan_holds(tiny(parallel, drops));
    expect_the_plan_sends(tiny(parallel, drops));
  }
}

// And the last steps see all: 4 tokens, then 8, then 16.
TEST(Plan, counts_tokens_that_pass_layers_by_at_first) {
  expect_the_plan_holds(tiny({.tp = 2, .dp = 1, .sequence = true}, [](TrainConfig& c) {
    c.batch.micro = 8;
    c.length.iterations = 4;
    c.model.token_drop = {.layers = {0, 1, 2, 3}, .least = 4, .most = 16, .steps = 2, .multiple = 4};
  }));
}

// No step leaves one out, and what they add is weighed from the third step on.
TEST(Plan, counts_layers_that_are_weighed) {
  expect_the_plan_holds(tiny({.dp = 1}, [](TrainConfig& c) {
    c.batch.micro = 8;
    c.length.iterations = 4;
    c.model.layer_drop = {.theta = 0.9999, .gamma = 100};
  }));
}
