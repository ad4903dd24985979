#include "weft/optim/grad_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace weft;

namespace {

/// The tree over [a, b), by its definition.
std::string tree(int a, int b) {
  if (b - a == 1) return std::to_string(a);
  const int middle = a + (b - a + 1) / 2;
  return "(" + tree(a, middle) + "+" + tree(middle, b) + ")";
}

struct Stack {
  std::string sum;
  std::size_t deepest = 0;
};

/// What a stack makes of n leaves.
Stack added(int n) {
  std::vector<std::string> waits;
  Stack out;
  for (int i = 0; i < n; ++i) {
    out.sum = std::to_string(i);
    for (int sums = sums_after(i, n); sums > 0; --sums) {
      out.sum = "(" + waits.back() + "+" + out.sum + ")";
      waits.pop_back();
    }
    if (i + 1 < n) waits.push_back(out.sum);
    out.deepest = std::max(out.deepest, waits.size());
  }
  EXPECT_TRUE(waits.empty());
  return out;
}

}  // namespace

TEST(GradTree, adds_leaves_as_they_come_like_the_balanced_tree) {
  for (int n = 1; n <= 40; ++n) EXPECT_EQ(added(n).sum, tree(0, n));
}

TEST(GradTree, keeps_as_many_sums_as_it_is_deep) {
  EXPECT_EQ(added(1).deepest, 0U);
  EXPECT_EQ(added(8).deepest, 3U);
  EXPECT_EQ(added(1024).deepest, 10U);
}
