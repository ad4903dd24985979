// Rates that follow the width of a model.
#include "weft/train/schedules.h"

#include <gtest/gtest.h>

#include "weft/train/settings.h"

using namespace weft;

namespace {

/// Four times as wide as the model its settings were found for.
TrainConfig wide(OptimizerKind kind) {
  TrainConfig c;
  c.model.hidden = 64;
  c.model.mup = {.on = true, .base_hidden = 16};
  c.optimizer.kind = kind;
  c.batch.global = 1;
  c.length.iterations = 10;
  c.rate.peak = 0.8;
  c.rate.floor = 0.4;
  c.rate.start = 0.1;
  c.rate.warmup_iterations = 2;
  return c;
}

}  // namespace

// As Megatron's get_mup_config_overrides() sets max_lr and min_lr; where warm-up begins stays.
TEST(Schedules, scale_peak_and_floor_by_the_width_but_not_where_warm_up_begins) {
  const TrainConfig c = wide(OptimizerKind::adam);
  EXPECT_DOUBLE_EQ(width_factor(c), 0.25);
  const RatePlan usual = run_schedules(c, 10).rate, slow = scaled(usual, width_factor(c));
  EXPECT_DOUBLE_EQ(slow.at(0), 0.1);
  EXPECT_DOUBLE_EQ(slow.at(2), 0.2);
  EXPECT_DOUBLE_EQ(slow.at(10), 0.1);
  EXPECT_DOUBLE_EQ(run_schedules(c, 10).ends.at(2), 0.8);
}

TEST(Schedules, scale_the_rate_of_words_under_sgd_unless_they_have_their_own) {
  TrainConfig c = wide(OptimizerKind::sgd);
  EXPECT_DOUBLE_EQ(width_factor(c), 4);
  EXPECT_DOUBLE_EQ(run_schedules(c, 10).ends.at(2), 3.2);
  c.rate.embedding_peak = 0.5;
  EXPECT_DOUBLE_EQ(run_schedules(c, 10).ends.at(2), 0.5);
  c.model.mup.on = false;
  EXPECT_DOUBLE_EQ(width_factor(c), 1);
}

// As Megatron has it: a part of a sample counts.
TEST(Schedules, warm_up_over_a_fraction_that_is_no_whole_number) {
  TrainConfig c = wide(OptimizerKind::adam);
  c.model.mup.on = false;
  c.rate.warmup_iterations = 0;
  c.rate.start = c.rate.floor = 0;
  c.rate.warmup_fraction = 0.25;
  EXPECT_DOUBLE_EQ(run_schedules(c, 10).rate.at(1), 0.8 / 2.5);
  EXPECT_DOUBLE_EQ(run_schedules(c, 10).rate.at(3), 0.8 * (1 - 0.5 / 7.5));
}
