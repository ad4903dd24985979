#include "weft/base/number.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>

#include "tests/support/says.h"

using namespace weft;
using support::says;

TEST(Exact, divides_what_divides_and_names_what_does_not) {
  static_assert(exact(12, 4) == 3);
  EXPECT_EQ(exact(std::int64_t{1} << 40, 2), std::int64_t{1} << 39);
  EXPECT_EQ(says([] { (void)exact(10, 4); }), "internal: 10 is not a multiple of 4");
  EXPECT_EQ(says([] { (void)exact(10, 0, Kind::usage); }), "usage: 10 cannot be divided by 0");
}

TEST(Exact, tells_the_place_of_its_caller) {
  try {
    (void)exact(1, 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_TRUE(std::string(e.where().file).ends_with("number_test.cpp")) << e.where().file;
  }
}

TEST(Narrow, passes_what_fits_and_names_what_does_not) {
  static_assert(narrow<std::int8_t>(127) == 127);
  EXPECT_EQ(says([] { (void)narrow<int>(std::int64_t{1} << 31); }),
            "internal: 2147483648 does not fit in 32 bits");
  EXPECT_EQ(says([] { (void)narrow<std::uint8_t>(-1); }), "internal: -1 does not fit in 8 unsigned bits");
  EXPECT_TRUE(rc::check("narrow gives the number back or fails", [](std::int64_t x) {
    const bool fits =
        x >= std::numeric_limits<std::int16_t>::min() && x <= std::numeric_limits<std::int16_t>::max();
    RC_ASSERT((says([&] { (void)narrow<std::int16_t>(x); }) == "nothing") == fits);
  }));
}

TEST(Product, is_checked_for_overflow) {
  EXPECT_EQ(product(1'000'000'000, -9), -9'000'000'000);
  EXPECT_EQ(says([] { (void)product(std::int64_t{1} << 40, 1 << 30); }),
            "shape: 1099511627776 times 1073741824 is more than 64 bits hold");
}

TEST(RoundUp, reaches_the_next_multiple_only_where_needed) {
  static_assert(round_up(50257, 128) == 50304 && round_up(128, 128) == 128 && round_up(0, 8) == 0);
  static_assert(divide_up(9, 4) == 3 && divide_up(8, 4) == 2);
}
