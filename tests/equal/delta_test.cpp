// Layers that remember, and attention with gates, under every kind of cut: each rank has the memories of
// its own heads; in a model as Qwen3-Next is built.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

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

}  // namespace

TEST(Delta, trains_as_on_one_rank) {
  const ModelConfig config = shape_of("delta", 4);
  expect_steps_of_one_rank(config, some_cuts());
}

TEST(Delta, has_the_bits_of_one_rank_in_exact_mode) {
  const ModelConfig config = shape_of("delta", 4);
  expect_bits_of_one_rank(config, some_cuts());
}

/// Two ranks have queries and gates of one group.
TEST(Delta, gates_of_groups_that_ranks_share_are_those_of_one_rank) {
  ModelConfig config = shape_of("delta", 2);
  config.groups = 2;
  const Cut cut = with_few_steps({.parallel = {.tp = 4, .dp = 1, .sequence = true}});
  EXPECT_EQ(difference(train(config, cut), alone(config), rounding_of(config, cut)), "");
}

TEST(Delta, and_gates_are_learned) {
  ModelConfig config = shape_of("delta", 2);
  const Curve both = alone(config);
  config.attention_gate = false;
  const Curve open = alone(config);
  config.delta = {};
  EXPECT_NE(both.losses, open.losses);
  EXPECT_NE(open.losses, alone(config).losses);
}

TEST(Delta, holds_what_the_counting_device_counts) {
  const ModelConfig config = shape_of("delta", 4);
  expect_counted_memory(config, {cuts()[1], cuts()[3], cuts()[4], cuts()[8]});
}

TEST(Delta, shows_planted_faults) {
  const ModelConfig config = shape_of("delta", 2);
  const Curve one = alone(config);
  for (const Fault fault : {Fault::sequence_parts_not_added, Fault::weight_gradient_dropped}) {
    Cut cut = with_few_steps({{.tp = 2, .dp = 1, .sequence = true}});
    cut.fault = fault;
    EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "") << int(fault);
  }
}
