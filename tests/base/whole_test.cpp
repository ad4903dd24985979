#include "weft/base/whole.h"

#include <gtest/gtest.h>

#include <limits>

using namespace weft;

TEST(Whole, is_what_doubles_hold_every_one_of) {
  EXPECT_EQ(whole_number(0), 0);
  EXPECT_EQ(whole_number(-17), -17);
  EXPECT_EQ(whole_number(9007199254740992), 9007199254740992);
  for (const double none :
       {0.5, -1.25, 9007199254740994.0, 1.6e66, -1e300, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(whole_number(none), std::nullopt) << none;
}
