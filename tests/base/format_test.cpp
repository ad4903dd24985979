#include "weft/base/format.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>

using namespace weft;

TEST(Join, puts_the_mark_between_and_nowhere_else) {
  EXPECT_EQ(join(std::array{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(join(std::vector<std::string>{"one"}, ", "), "one");
  EXPECT_EQ(join(std::vector<int>{}, ", "), "");
}

TEST(Split, keeps_empty_fields_and_is_undone_by_join) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_TRUE(rc::check("join(split(x)) == x", [] {
    const auto line = *rc::gen::container<std::string>(rc::gen::element('a', 'b', ','));
    RC_ASSERT(join(split(line, ','), ",") == line);
  }));
}

TEST(Trim, takes_blanks_off_both_ends_only) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Lower, changes_ascii_letters_only) { EXPECT_EQ(lower("AbZ-[9"), "abz-[9"); }

TEST(HumanBytes, gives_one_decimal_of_the_largest_unit_that_fits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(1395864371), "1.3 GiB");
  EXPECT_EQ(human_bytes((std::int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(-2048), "-2.0 KiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::int64_t>::max()), "8.0 EiB");
}

TEST(HumanCount, uses_the_letters_people_use_for_parameters) {
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(999.6), "1.0 k");
  EXPECT_EQ(human_count(124'439'808), "124.4 M");
  EXPECT_EQ(human_count(2.1e9), "2.1 G");
  EXPECT_EQ(human_count(-1500), "-1.5 k");
  EXPECT_EQ(human_count(1e21), "1000.0 E");
}

TEST(HumanDuration, gives_two_units_at_most) {
  EXPECT_EQ(human_duration(0), "0 ms");
  EXPECT_EQ(human_duration(0.0854), "85 ms");
  EXPECT_EQ(human_duration(0.9999), "1.0 s");
  EXPECT_EQ(human_duration(12.34), "12.3 s");
  EXPECT_EQ(human_duration(59.96), "1 min 00 s");
  EXPECT_EQ(human_duration(245), "4 min 05 s");
  EXPECT_EQ(human_duration(3599.6), "1 h 00 min");
  EXPECT_EQ(human_duration(12'000), "3 h 20 min");
  EXPECT_EQ(human_duration(187'200), "2 d 04 h");
  EXPECT_EQ(human_duration(-2), "-2.0 s");
  EXPECT_EQ(human_duration(1e300), "for ever");
  EXPECT_EQ(human_duration(std::numeric_limits<double>::quiet_NaN()), "unknown");
}
