#include "weft/generate/choose.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/support/refused.h"

using namespace weft;

namespace {

const std::array<float, 4> logits{0.F, 2.F, 1.F, -std::numeric_limits<float>::infinity()};

}  // namespace

TEST(Choose, takes_the_likeliest_where_there_is_no_temperature) {
  EXPECT_EQ(choose_token(logits, {.temperature = 0}, 0.99), 1);
}

TEST(Choose, draws_by_probability_in_falling_order) {
  // e^2, e^1 and e^0 of their sum: 0.665, 0.245, 0.090.
  EXPECT_EQ(choose_token(logits, {}, 0.0), 1);
  EXPECT_EQ(choose_token(logits, {}, 0.66), 1);
  EXPECT_EQ(choose_token(logits, {}, 0.67), 2);
  EXPECT_EQ(choose_token(logits, {}, 0.92), 0);
  EXPECT_EQ(choose_token(logits, {}, 0.9999999), 0);
}

TEST(Choose, keeps_to_the_top_k_and_to_the_nucleus) {
  EXPECT_EQ(choose_token(logits, {.top_k = 1}, 0.99), 1);
  EXPECT_EQ(choose_token(logits, {.top_k = 2}, 0.99), 2);
  EXPECT_EQ(choose_token(logits, {.top_p = 0.5}, 0.99), 1);
  EXPECT_EQ(choose_token(logits, {.top_p = 0.7}, 0.99), 2);
}

TEST(Choose, sharpens_as_the_temperature_falls) {
  EXPECT_EQ(choose_token(logits, {.temperature = 0.1}, 0.99), 1);
}

TEST(Choose, makes_words_that_were_said_less_likely) {
  std::array<float, 4> some{-1.F, 2.F, 3.F, 0.5F};
  const std::array<std::int32_t, 5> said{2, 0, 2, 7, 0};
  penalize(some, said, 2);
  EXPECT_EQ(some, (std::array<float, 4>{-2.F, 2.F, 1.5F, 0.5F}));
  penalize(some, said, 1);
  EXPECT_EQ(some[0], -2.F);
}

TEST(Choose, says_which_settings_choose_from_nothing) {
  EXPECT_EQ(refused([] { check({.temperature = -1}); }), "generate: temperature -1 is not 0 or more");
  EXPECT_EQ(refused([] { check({.top_k = -2}); }), "generate: top-k -2 is not 0 or more");
  EXPECT_EQ(refused([] { check({.top_p = 1.5}); }), "generate: top-p 1.5 is not between 0 and 1");
}
