// Layers that remember, and attention with gates, under every kind of cut: each rank has the memories of
// its own heads; in a model as Qwen3-Next is built.
#include <gtest/gtest.h>

#include "tests/equal/same_bits.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int few = rounds(4);

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 4, .dp = 1, .context = ContextForm::two_levels, .context_levels = {2, 2}}},
          {{.tp = 2, .cp = 2, .dp = 1, .context = ContextForm::gather}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.pp = 4, .dp = 1}, 4},
          {{.dp = 4, .zero = 1}, 1},
          {{.tp = 2, .pp = 2, .dp = 2, .sequence = true}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
}

/// Of these some, where a sanitizer waits.
std::vector<Cut> some_cuts() { return some_of(cuts(), 3); }

Cut with_steps(Cut cut, bool exact) {
  cut.steps = few;
  cut.exact = exact;
  return cut;
}

Curve alone(const ModelConfig& config, bool exact) {
  return train(config, with_steps({.parallel = {.dp = 1}, .micro_batch = exact ? 1 : 8}, exact));
}

}  // namespace

TEST(Delta, trains_as_on_one_rank) {
  const ModelConfig config = shape_of("delta", 4);
  const Curve one = alone(config, false);
  for (const Cut& cut : some_cuts())
    EXPECT_EQ(difference(train(config, with_steps(cut, false)), one, rounding_of(config, cut)), "")
        << name_of(cut);
}

TEST(Delta, has_the_bits_of_one_rank_in_exact_mode) {
  ModelConfig config = shape_of("delta", 4);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    config.precision = precision;
    const Curve one = alone(config, true);
    for (const Cut& cut : some_cuts())
      expect_same_bits(train(config, with_steps(cut, true)), one, name_of(cut));
  }
}

/// Two ranks have queries and gates of one group.
TEST(Delta, gates_of_groups_that_ranks_share_are_those_of_one_rank) {
  ModelConfig config = shape_of("delta", 2);
  config.groups = 2;
  const Cut cut = with_steps({.parallel = {.tp = 4, .dp = 1, .sequence = true}}, false);
  EXPECT_EQ(difference(train(config, cut), alone(config, false), rounding_of(config, cut)), "");
}

TEST(Delta, and_gates_are_learned) {
  ModelConfig config = shape_of("delta", 2);
  const Curve both = alone(config, false);
  config.attention_gate = false;
  const Curve open = alone(config, false);
  config.delta = {};
  EXPECT_NE(both.losses, open.losses);
  EXPECT_NE(open.losses, alone(config, false).losses);
}

TEST(Delta, holds_what_the_counting_device_counts) {
  const ModelConfig config = shape_of("delta", 4);
  for (const Cut& cut : {cuts()[1], cuts()[3], cuts()[4], cuts()[8]}) {
    EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut);
    Cut exact = cut;
    exact.exact = true;
    EXPECT_EQ(memory_difference(config, exact), "") << name_of(cut);
  }
}

TEST(Delta, shows_planted_faults) {
  const ModelConfig config = shape_of("delta", 2);
  const Curve one = alone(config, false);
  for (const Fault fault : {Fault::sequence_parts_not_added}) {
    Cut cut = with_steps({{.tp = 2, .dp = 1, .sequence = true}}, false);
    cut.fault = fault;
    EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "") << int(fault);
  }
}
