// Exact sums: digits, carries, signs, and what does not fit a double.
#include "weft/tensor/exact_sum.h"

#include <rapidcheck.h>

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace weft {
namespace {

using Digits = std::array<double, exact_digits>;

TEST(ExactSum, gives_back_any_one_number) {
  for (const int exponent : {-320, -298, -149, -33, -32, -31, 0, 100, 200})
    for (const std::int64_t integer : {std::int64_t{1}, std::int64_t{-3}, (std::int64_t{1} << 53) - 1}) {
      Digits digits{};
      add_exact(digits, integer, exponent);
      EXPECT_EQ(exact_value(digits), std::ldexp(double(integer), exponent)) << integer << " * 2^" << exponent;
    }
}

TEST(ExactSum, keeps_what_lies_beyond_the_last_digit_in_it) {
  Digits digits{};
  add_exact(digits, (std::int64_t{1} << 53) - 1, 224 + 20);  // reaches 2^41 in the last digit
  EXPECT_EQ(exact_value(digits), std::ldexp(double((std::int64_t{1} << 53) - 1), 244));
}

TEST(ExactSum, loses_nothing_between_the_largest_and_the_smallest) {
  Digits digits{};
  add_exact(digits, 1, 255);
  add_exact(digits, 1, -298);
  add_exact(digits, -1, 255);
  EXPECT_EQ(exact_value(digits), 0x1p-298);
}

TEST(ExactSum, has_one_way_to_write_a_sum) {
  EXPECT_TRUE(rc::check([](const std::vector<std::int32_t>& terms) {
    Digits once{};
    Digits often{};
    for (const std::int32_t term : terms) {
      add_exact(once, term, -40);
      add_exact(often, term, -40);
      carry(often);
    }
    carry(once);
    RC_ASSERT(once == often);
    for (std::size_t i = 0; i + 1 < exact_digits; ++i) RC_ASSERT(once[i] >= 0 && once[i] < 0x1p32);
  }));
}

TEST(ExactSum, of_a_million_calls_still_has_room) {
  Digits digits{};
  for (int i = 0; i < 1 << 20; ++i) add_exact(digits, 0xFFFFFFFF, -320);
  EXPECT_EQ(exact_value(digits), std::ldexp(double(0xFFFFFFFF), -300));
}

}  // namespace
}  // namespace weft
