#include "weft/nn/mixed_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "tests/support/refused.h"

using namespace weft;

TEST(MixedStack, gives_back_the_latest_first_whatever_its_type) {
  MixedStack keep;
  keep.push(std::string(100, 'a'));
  keep.push(3);
  keep.push(std::array<double, 20000>{});
  EXPECT_EQ(keep.pop<decltype(std::array<double, 20000>{})>().size(), 20000U);
  EXPECT_EQ(keep.pop<int>(), 3);
  EXPECT_EQ(keep.pop<std::string>(), std::string(100, 'a'));
  EXPECT_TRUE(keep.empty());
}

TEST(MixedStack, says_what_it_found_where_something_else_was_wanted) {
  MixedStack keep;
  keep.push(3);
  EXPECT_EQ(refused([&] { (void)keep.pop<double>(); }), "pass: backward out of order, wanted d, found i");
  (void)keep.pop<int>();
  EXPECT_EQ(refused([&] { (void)keep.pop<int>(); }), "pass: i was never saved");
}

TEST(MixedStack, runs_work_in_the_order_it_was_put_away_and_frees_what_it_held) {
  MixedStack keep;
  std::string said;
  const auto held = std::make_shared<int>(1);
  keep.push([&said, held] { said += 'a'; });
  keep.push([&said] { said += 'b'; });
  keep.run_all();
  EXPECT_EQ(said, "ab");
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(keep.empty());
}
