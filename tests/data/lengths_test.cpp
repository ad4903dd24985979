#include "weft/data/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/golden.h"

using namespace weft::data;
using testing::ElementsAre;

namespace {

LengthRule rule_of(const Json& config) {
  const Json& how = config.at("schedule_config");
  const std::string type = config.at("schedule_type");
  LengthRule rule{.least = config.at("min_difficulty"), .most = config.at("max_difficulty")};
  rule.curve = type == "fixed_linear" ? LengthCurve::fixed_linear
               : type == "fixed_root" ? LengthCurve::fixed_root
                                      : LengthCurve::fixed_discrete;
  rule.steps = how.value("total_curriculum_step", 0);
  rule.multiple = how.value("difficulty_step", 1);
  rule.root = how.value("root_degree", 1);
  rule.lengths = how.value("difficulty", std::vector<std::int64_t>{});
  rule.until = how.value("max_step", std::vector<std::int64_t>{});
  return rule;
}

}  // namespace

TEST(Lengths, are_the_numbers_of_deepspeeds_scheduler) {
  const Json cases = golden("curriculum", "cases");
  ASSERT_EQ(cases.size(), 3U);
  for (const Json& one : cases) {
    const Lengths lengths(rule_of(one.at("config")));
    for (std::size_t i = 0; i < one.at("steps").size(); ++i)
      EXPECT_EQ(lengths.at(one.at("steps")[i]), one.at("get_difficulty")[i])
          << one.at("config") << one.at("steps")[i];
    const Json& updated = one.at("update_difficulty_steps_1_to_30");
    for (std::size_t i = 0; i < updated.size(); ++i)
      EXPECT_EQ(lengths.at(std::int64_t(i) + 1), updated[i]) << i + 1;
  }
}

TEST(Lengths, are_stairs_that_know_their_first_steps) {
  const Lengths lengths(
      {.curve = LengthCurve::fixed_linear, .least = 4, .most = 16, .steps = 4, .multiple = 4});
  EXPECT_THAT(lengths.stairs(), ElementsAre(Lengths::Stair{0, 4}, Lengths::Stair{2, 8}, Lengths::Stair{3, 12},
                                            Lengths::Stair{4, 16}));
  EXPECT_EQ(lengths.stair_of(1), (Lengths::Stair{0, 4}));
  EXPECT_EQ(lengths.stair_of(1000), (Lengths::Stair{4, 16}));
}

// At the last step 104 is rounded down; DeepSpeed goes on along the line until that is over, and stops there.
TEST(Lengths, reach_an_end_that_is_no_multiple_after_the_last_step) {
  const Lengths lengths(
      {.curve = LengthCurve::fixed_linear, .least = 64, .most = 104, .steps = 8, .multiple = 16});
  EXPECT_THAT(lengths.stairs(), ElementsAre(Lengths::Stair{0, 64}, Lengths::Stair{4, 80},
                                            Lengths::Stair{7, 96}, Lengths::Stair{10, 104}));
}

TEST(Lengths, that_begin_at_their_end_stay_there) {
  EXPECT_THAT(
      Lengths({.curve = LengthCurve::fixed_linear, .least = 100, .most = 100, .steps = 9, .multiple = 16})
          .stairs(),
      ElementsAre(Lengths::Stair{0, 100}));
  EXPECT_THAT(Lengths(64).stairs(), ElementsAre(Lengths::Stair{0, 64}));
}

TEST(Lengths, in_stairs_stay_where_they_were_longest) {
  const LengthRule rule{
      .curve = LengthCurve::fixed_discrete, .most = 16, .lengths = {8, 16, 4}, .until = {3, 5}};
  EXPECT_THAT(Lengths(rule).stairs(), ElementsAre(Lengths::Stair{0, 8}, Lengths::Stair{4, 16}));
}

// A root of 100 over a token needs more steps than there are: what is never reached is not looked for.
TEST(Lengths, that_hardly_grow_are_found_all_the_same) {
  const Lengths lengths(
      {.curve = LengthCurve::fixed_root, .least = 8, .most = 17, .steps = 1000, .multiple = 8, .root = 100});
  EXPECT_EQ(lengths.at(0), 8);
  EXPECT_EQ(lengths.at(1), 16);
  EXPECT_EQ(lengths.at(1'000'000), 16);
}
