// Attention sinks under every kind of cut: each rank has those of its own heads, and learns what they take
// from its own queries; in a model as gpt-oss is built.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Experts with biases are whole on every tensor-parallel rank.
std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1, .etp = 1}},
          {{.tp = 4, .dp = 1, .etp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 2, .dp = 1, .context = ContextForm::gather}},
          {{.cp = 2, .dp = 1, .context = ContextForm::heads}},
          {{.cp = 4, .dp = 1, .context = ContextForm::two_levels, .context_levels = {2, 2}}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.dp = 4, .ep = 4, .zero = 1}, 1},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .etp = 1, .sequence = true}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .etp = 1, .sequence = true, .zero = 3}, 1}};
}

/// Of these some, where a sanitizer waits.
std::vector<Cut> some_cuts() { return some_of(cuts(), 4); }

}  // namespace

TEST(Sinks, train_as_on_one_rank) {
  const ModelConfig config = shape_of("oss", 2);
  expect_steps_of_one_rank(config, some_cuts());
}

TEST(Sinks, have_the_bits_of_one_rank_in_exact_mode) {
  const ModelConfig config = shape_of("oss", 2);
  expect_bits_of_one_rank(config, some_cuts());
}

TEST(Sinks, are_learned) {
  ModelConfig config = shape_of("oss", 2);
  const Curve learned = alone(config);
  config.sink = Sink::zero;
  const Curve zero = alone(config);
  config.sink = Sink::none;
  const Curve none = alone(config);
  EXPECT_NE(learned.losses, zero.losses);
  EXPECT_NE(zero.losses, none.losses);
}

TEST(Sinks, hold_what_the_counting_device_counts) {
  ModelConfig config = shape_of("oss", 2);
  expect_counted_memory(config, {cuts()[1], cuts()[3], cuts()[4], cuts()[8]});
}

TEST(Sinks, show_planted_faults) {
  const ModelConfig config = shape_of("oss", 2);
  const Curve one = alone(config);
  for (const Fault fault : {Fault::sequence_parts_not_added, Fault::experts_learn_nothing}) {
    Cut cut = with_few_steps({{.tp = 2, .dp = 1, .etp = 1, .sequence = true}});
    cut.fault = fault;
    EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "") << int(fault);
  }
}
