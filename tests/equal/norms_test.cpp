// Norms of what attention and MLPs give, and windows with angles of their own, under every kind of cut; in
// models as Gemma 3 and OLMo 2 are built.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 2, .dp = 1, .context = ContextForm::heads}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.dp = 4, .zero = 1}, 1},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
}

/// Of these some, where a sanitizer waits.
std::vector<Cut> some_cuts() { return some_of(cuts(), 4); }

}  // namespace

TEST(NormPlaces, train_as_on_one_rank) {
  for (const char* name : {"gemma", "olmo"}) expect_steps_of_one_rank(shape_of(name, 4), some_cuts());
}

TEST(NormPlaces, have_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : {"gemma", "olmo"}) expect_bits_of_one_rank(shape_of(name, 4), some_cuts());
}

/// Rounding may say whether what is next to a limit learns, and one such number moved losses by 3e-6: of
/// limits exact mode is asked.
TEST(NormsOfEachHead, train_as_on_one_rank) {
  for (const char* name : {"plus", "bare", "turned"}) {
    SCOPED_TRACE(name);
    ModelConfig config = shape_of(name, 4);
    config.qkv_limit = 0;
    expect_steps_of_one_rank(config, some_cuts());
  }
}

TEST(NormsOfEachHead, have_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : {"plus", "bare", "turned"}) expect_bits_of_one_rank(shape_of(name, 4), some_cuts());
}

/// Two ranks have queries of one group, and its key.
TEST(NormsOfEachHead, whose_groups_ranks_share_are_those_of_one_rank) {
  ModelConfig config = shape_of("plus", 2);
  config.groups = 2;
  Cut cut = with_few_steps({.parallel = {.tp = 4, .dp = 1, .sequence = true}});
  EXPECT_EQ(difference(train(config, cut), alone(config), rounding_of(config, cut)), "");
  config.exact = true;
  expect_bits_of_one_rank(config, {cut, {.parallel = {.tp = 4, .cp = 2, .dp = 1}}});
}

TEST(NormsOfEachHead, are_those_that_were_asked_for) {
  ModelConfig config = shape_of("plus", 2);
  std::vector<std::vector<double>> losses{told_apart(config)};
  config.qk_norm_turned = true;
  losses.push_back(told_apart(config));
  config.qk_norm_each = config.qk_norm_turned = config.qk_norm = false;
  losses.push_back(told_apart(config));
  config.norm_gain = false;
  losses.push_back(told_apart(config));
  expect_all_differ(losses);
}

TEST(NormsOfEachHead, hold_what_the_counting_device_counts) {
  for (const char* name : {"plus", "bare", "turned"})
    expect_counted_memory(shape_of(name, 4), {cuts()[1], cuts()[3], cuts()[6]});
}

TEST(NormPlaces, are_those_that_were_asked_for) {
  ModelConfig config = shape_of("gemma", 4);
  std::vector<std::vector<double>> losses{told_apart(config)};
  config.norm_places = NormPlaces::behind;
  losses.push_back(told_apart(config));
  config.norm_places = NormPlaces::before;
  losses.push_back(told_apart(config));
  config.rotary.window_base.reset();
  losses.push_back(told_apart(config));
  config.residual_multiplier = 1;
  losses.push_back(told_apart(config));
  expect_all_differ(losses);
}

TEST(NormPlaces, hold_what_the_counting_device_counts) {
  expect_counted_memory(shape_of("gemma", 4), {cuts()[1], cuts()[3], cuts()[6]});
  expect_counted_memory(shape_of("olmo", 4), {cuts()[1], cuts()[7]});
}

TEST(NormPlaces, show_planted_faults) {
  const ModelConfig config = shape_of("gemma", 4);
  const Curve one = alone(config);
  Cut cut = with_few_steps(cuts()[1]);
  cut.fault = Fault::sequence_parts_not_added;
  EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "");
}
