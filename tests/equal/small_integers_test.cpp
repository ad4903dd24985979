// Cut weights that travel as int8 and cut gradients that travel as int4: bits of ranks, memory, and how far
// they lead from the trainings that they stand for.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

Cut cut_of(const ParallelConfig& layout, bool weights, bool gradients) {
  Cut cut{.parallel = layout, .micro_batch = 1, .steps = rounds(6)};
  cut.parallel.wire = {.weights = weights, .gradients = gradients, .weight_block = 256, .gradient_block = 64};
  return cut;
}

ModelConfig tiny_model(const char* name, Precision precision) {
  ModelConfig config = shape_of(name, 2);
  config.precision = precision;
  return config;
}

}  // namespace

// Copies of tied weights stay alike, memory is what is counted, and no loss goes far in six steps.
TEST(SmallIntegers, train_in_every_layout_in_the_memory_that_is_counted) {
  const std::vector<ParallelConfig> layouts{{.dp = 4, .zero = 3},
                                            {.pp = 2, .dp = 2, .zero = 3},
                                            {.tp = 2, .dp = 2, .sequence = true, .zero = 3},
                                            {.dp = 4, .zero = 3, .near_ranks = 2},
                                            {.cp = 2, .dp = 2, .zero = 3},
                                            {.dp = 8, .zero = 3, .shard_groups = 2, .near_ranks = 2}};
  for (const ParallelConfig& layout : some_of(layouts, 3))
    for (const char* model : {"gpt2", "mixture"}) {
      const ModelConfig config = tiny_model(model, Precision::bf16);
      const Curve plain = train(config, cut_of(layout, false, false));
      const Cut cut = cut_of(layout, true, true);
      const Curve curve = train(config, cut);
      EXPECT_EQ(difference(curve, plain, {.loss = 0.05, .norm = 0.2}), "") << name_of(cut) << " " << model;
      EXPECT_NE(curve.losses, plain.losses) << name_of(cut) << " " << model;
      EXPECT_TRUE(curve.copies_agree) << name_of(cut) << " " << model;
      EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut) << " " << model;
    }
}

// Near ranks keep what came of int8: what is gathered again, and from whom, changes no bit.
TEST(SmallIntegers, of_weights_are_the_same_whoever_holds_them_twice) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const ModelConfig config = tiny_model("gpt2", precision);
    const auto losses = [&](int near) {
      Cut cut = cut_of({.dp = 4, .zero = 3}, true, false);
      cut.parallel.near_ranks = near;
      return train(config, cut).losses;
    };
    EXPECT_EQ(losses(2), losses(0));
  }
}

TEST(SmallIntegers, give_the_same_bits_twice_and_in_every_schedule) {
  const ModelConfig config = tiny_model("gpt2", Precision::bf16);
  const auto curve = [&](const char* schedule) {
    Cut cut = cut_of({.pp = 2, .dp = 2, .zero = 3}, true, true);
    cut.parallel.schedule = schedule;
    return train(config, cut).losses;
  };
  EXPECT_EQ(curve("1f1b"), curve("1f1b"));
  EXPECT_EQ(curve("zb-h1"), curve("1f1b"));
}

// Gradients are cut in the second stage, too; and sums of fewer bits are those of what has arrived.
TEST(SmallIntegers, of_gradients_go_with_the_second_stage) {
  const ModelConfig config = tiny_model("gpt2", Precision::bf16);
  for (const bool narrow : {false, true}) {
    const auto curve = [&](int zero) {
      Cut cut = cut_of({.dp = 2, .zero = zero}, false, true);
      cut.sum_in_bf16 = narrow;
      return train(config, cut).losses;
    };
    EXPECT_EQ(curve(2), curve(3));
  }
}

TEST(SmallIntegers, of_a_device_that_computes_later_are_the_same) {
  const ModelConfig config = tiny_model("gpt2", Precision::bf16);
  Cut cut = cut_of({.dp = 4, .zero = 3, .near_ranks = 2}, true, true);
  const std::vector<double> losses = train(config, cut).losses;
  for (const Late late : {Late::at_once, Late::when_waited}) {
    cut.late = late;
    EXPECT_EQ(train(config, cut).losses, losses);
  }
}
