#include "weft/mesh/layout.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"

using namespace weft;
using Groups = std::vector<std::vector<int>>;

TEST(Layout, puts_tensor_ranks_next_to_each_other) {
  const ParallelLayout layout({.tp = 2, .dp = 2, .pp = 2});
  EXPECT_EQ(layout.world(), 8);
  EXPECT_EQ(layout.groups(Axis::tp), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(layout.groups({Axis::tp, Axis::pp}).size(), 2U);
  for (int r = 0; r < 8; ++r) EXPECT_EQ(layout.rank(layout.at(r)), r);
}

TEST(Layout, experts_cut_the_same_ranks_again_and_share_the_pipeline) {
  const ParallelLayout dense({.tp = 2, .cp = 2, .dp = 2, .pp = 2});
  const ParallelLayout view = dense.experts(4, 1);
  EXPECT_EQ(view.world(), dense.world());
  EXPECT_EQ(view.degree(Axis::dp), 2);
  EXPECT_EQ(view.groups(Axis::pp), dense.groups(Axis::pp));
  EXPECT_EQ(view.groups(Axis::ep).front(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Layout, agrees_with_megatron_on_its_first_worked_example) {
  const ParallelLayout a({.tp = 4, .dp = 2, .pp = 2});
  EXPECT_EQ(a.groups({Axis::tp, Axis::pp}),
            (Groups{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
  EXPECT_EQ(a.groups(Axis::dp),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  const ParallelLayout swapped({.tp = 4, .dp = 2, .pp = 2},
                               {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp});
  EXPECT_EQ(swapped.groups({Axis::tp, Axis::pp}),
            (Groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
}

TEST(Layout, agrees_with_megatron_on_its_second_worked_example) {
  const ParallelLayout b({.tp = 2, .cp = 2, .dp = 2, .pp = 2});
  EXPECT_EQ(b.groups({Axis::dp, Axis::cp}),
            (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(b.groups({Axis::tp, Axis::dp}),
            (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}}));
  const ParallelLayout experts = b.experts(4, 1);
  EXPECT_EQ(experts.groups(Axis::ep), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(experts.groups({Axis::tp, Axis::ep, Axis::pp}),
            (Groups{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
}

TEST(Layout, says_which_degrees_cannot_be) {
  EXPECT_EQ(refused([] { ParallelLayout({.tp = 0}); }),
            "layout: every degree must be at least 1, got tp 0, cp 1, dp 1, pp 1");
  EXPECT_EQ(refused([] { (void)ParallelLayout({.tp = 2}).experts(3, 1); }),
            "layout: 2 ranks of one pipeline stage cannot be cut into ep 3 times etp 1");
}
