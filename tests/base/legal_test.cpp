#include "weft/base/legal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "weft/base/error.h"
#include "weft/base/fields.h"

using namespace weft;
using testing::ThrowsMessage;

namespace {

struct Loom {
  int shafts = 0;
  double speed = 1;
  std::vector<std::int64_t> picks;
  std::optional<double> tension;
};
template <class Visitor>
void describe(Visitor& v, Loom& c) {
  v("shafts", c.shafts, "how many", legal::size);
  v("speed", c.speed, "how fast", legal::positive);
  v("picks", c.picks, "which", legal::size_or_none);
  v("tension", c.tension, "how tight", legal::below_one);
}

}  // namespace

TEST(Legal, intervals_hold_no_number_that_is_not_finite) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Legal& legal : {legal::finite, legal::size, legal::positive, legal::not_negative}) {
    EXPECT_FALSE(legal.holds(std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(legal.holds(infinity) || legal.holds(-infinity));
  }
}

TEST(Legal, intervals_are_told_in_words) {
  EXPECT_EQ(words(legal::finite), "");
  EXPECT_EQ(words(legal::positive), "above 0");
  EXPECT_EQ(words(legal::not_negative), "of 0 or more");
  EXPECT_EQ(words(legal::fraction), "from 0 to 1");
  EXPECT_EQ(words(legal::below_one), "from 0 to below 1");
  EXPECT_EQ(words(Legal{.most = 2.5}), "of at most 2.5");
}

TEST(Legal, numbers_come_in_from_people_and_files_only) {
  Loom loom;
  const Fields fields(loom);
  const auto read = [&](const char* path, std::vector<std::string> from, Origin who = Origin::file) {
    fields.at(path).read(from, who);
  };
  EXPECT_THAT([&] { read("shafts", {"0"}); },
              ThrowsMessage<Error>("'0' is not a whole number from 1 to 2147483647"));
  EXPECT_THAT([&] { read("speed", {"nan"}, Origin::command_line); },
              ThrowsMessage<Error>("'nan' is not a finite number above 0"));
  EXPECT_THAT(
      [&] {
        read("picks", {"1", "-2"});
      },
      ThrowsMessage<Error>("'-2' is not a whole number from 0 to 2147483647"));
  EXPECT_THAT([&] { read("tension", {"1"}); },
              ThrowsMessage<Error>("'1' is not a finite number from 0 to below 1"));
  EXPECT_THAT([&] { read("shafts", {"few"}); }, ThrowsMessage<Error>("'few' is not a whole number"));
  EXPECT_NO_THROW(read("shafts", {"0"}, Origin::checkpoint));
  EXPECT_EQ(loom.speed, 1);
}
