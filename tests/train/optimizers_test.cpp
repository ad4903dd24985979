// Optimizers over some hundred steps of a whole run.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/refused.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// The mean loss of the last twenty of 300 steps on two ranks, or as many as are asked for.
double loss_at_the_end(const OptimizerConfig& optimizer, const ParallelConfig& parallel = {}) {
  TrainConfig config = tiny_run();
  config.parallel = parallel;
  config.length.iterations = 300;
  config.eval.interval = 0;
  config.parallel.dp = config.run.ranks = std::max(parallel.dp, 2);
  config.optimizer = optimizer;
  config.rate.peak = 1e-3;
  config.rate.style = RateStyle::cosine;
  config.rate.warmup_iterations = 30;
  const Told told = train(completed(config));
  double sum = 0;
  for (std::size_t i = told.losses.size() - 20; i < told.losses.size(); ++i) sum += told.losses[i];
  return sum / 20;
}

}  // namespace

// Second moments must have settled when they freeze: here they have after a third of the steps.
TEST(OneBitAdam, comes_as_far_as_adam_in_300_steps) {
  if (sanitized) GTEST_SKIP() << "what 300 steps come to is for a plain build to see";
  const double adam = loss_at_the_end({.beta2 = 0.97});
  const double one_bit =
      loss_at_the_end({.kind = OptimizerKind::onebitadam, .beta2 = 0.97, .onebit = {.freeze = 100}});
  EXPECT_LT(adam, 2.8);  // of 3.4 at the start
  EXPECT_LT(one_bit, 1.02 * adam);
}

// Half of the steps go alone.
TEST(ZeroOneAdam, comes_as_far_as_adam_in_300_steps) {
  if (sanitized) GTEST_SKIP() << "what 300 steps come to is for a plain build to see";
  const double adam = loss_at_the_end({.beta2 = 0.97});
  const double zero_one =
      loss_at_the_end({.kind = OptimizerKind::zerooneadam,
                       .beta2 = 0.97,
                       .zeroone = {.freeze = 150, .variance_steps = 16, .local_steps = 40, .most_local = 8}});
  EXPECT_LT(zero_one, 1.02 * adam);
}

// Four ranks, two near each other: gradients are rounded twice.
TEST(SmallIntegers, come_as_far_as_whole_numbers_in_300_steps) {
  if (sanitized) GTEST_SKIP() << "what 300 steps come to is for a plain build to see";
  const ParallelConfig cut{.dp = 4, .zero = 3, .near_ranks = 2};
  ParallelConfig small = cut;
  small.wire = {.weights = true, .gradients = true};
  const double whole = loss_at_the_end({.beta2 = 0.97}, cut),
               rounded = loss_at_the_end({.beta2 = 0.97}, small);
  EXPECT_LT(whole, 2.8);
  EXPECT_LT(rounded, 1.02 * whole);
  EXPECT_NE(rounded, whole);
}

TEST(Resume, refuses_the_states_of_another_optimizer) {
  const support::TemporaryDirectory folder;
  TrainConfig config = saving_often(folder.path());
  config.optimizer.kind = OptimizerKind::muon;
  config.exit.interval = 4;
  train(config);
  TrainConfig again = going_on(config);
  const std::string who = (folder / "step_00000004").string() + ": holds the states of ",
                    rest = "; add {checkpoint.load_optimizer=false} or {checkpoint.finetune}";
  again.optimizer.muon.others = MuonOthers::lion;
  EXPECT_EQ(refused([&] { train(again); }), who + "{optimizer.muon.others} adam, not of lion" + rest);
  again.optimizer.kind = OptimizerKind::adam;
  EXPECT_EQ(refused([&] { train(again); }), who + "{optimizer.kind} muon, not of adam" + rest);
}
