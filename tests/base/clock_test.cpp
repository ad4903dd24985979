#include "weft/base/clock.h"

#include <gtest/gtest.h>

#include <limits>

using namespace weft;

TEST(Stopwatch, goes_forward_and_starts_again) {
  Stopwatch watch;
  const double first = watch.seconds();
  EXPECT_GE(first, 0);
  EXPECT_GE(watch.seconds(), first);
  const double lap = watch.restart();
  EXPECT_GE(lap, first);
  EXPECT_LT(watch.seconds(), 3600);
}

TEST(Deadline, passes_when_its_time_is_up) {
  const Deadline now(0), late(-5), soon(3600);
  EXPECT_TRUE(now.passed());
  EXPECT_TRUE(late.passed());
  EXPECT_EQ(late.seconds_left(), 0);
  EXPECT_FALSE(soon.passed());
  EXPECT_GT(soon.seconds_left(), 3500);
  EXPECT_LE(soon.seconds_left(), 3600);
}

TEST(Deadline, never_comes_unless_it_is_given_a_time_this_side_of_a_century) {
  EXPECT_FALSE(Deadline().passed());
  EXPECT_EQ(Deadline(std::numeric_limits<double>::infinity()).at(), Deadline().at());
  EXPECT_EQ(Deadline(std::numeric_limits<double>::quiet_NaN()).at(), Deadline().at());
  EXPECT_EQ(Deadline(1e300).at(), Deadline().at());
}
