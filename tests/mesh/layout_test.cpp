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
  const ParallelLayout both({.tp = 2, .cp = 2, .dp = 2, .pp = 2, .ep = 4, .etp = 1});
  EXPECT_EQ(both.world(), 16);
  EXPECT_EQ(both.degree(Axis::edp), 2);
  for (int r = 0; r < 16; ++r) {
    const Coordinate at = both.at(r);
    EXPECT_EQ(both.rank(at), r);
    EXPECT_EQ(at[std::size_t(Axis::ep)] + 4 * (at[std::size_t(Axis::edp)] + 2 * at[std::size_t(Axis::pp)]),
              r);
  }
}

TEST(Layout, has_no_view_of_experts_where_nobody_asked_for_one) {
  const ParallelLayout dense({.tp = 2, .dp = 2});
  EXPECT_FALSE(dense.has(View::experts));
  EXPECT_EQ(refused([&] { (void)dense.groups(Axis::ep); }),
            "layout: ep: nothing was said of experts' degrees");
  const ParallelLayout experts({.tp = 2, .dp = 2, .ep = 2});
  EXPECT_EQ(experts.degree(Axis::etp), 2);
  EXPECT_EQ(refused([&] {
              (void)experts.groups({Axis::tp, Axis::ep});
            }),
            "layout: tp, ep cut the same ranks twice; ask for axes of one view");
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
}

TEST(Layout, agrees_with_megatron_on_the_experts_of_sixteen_ranks) {
  const ParallelLayout b({.tp = 2, .cp = 2, .dp = 2, .pp = 2, .ep = 4, .etp = 1});
  EXPECT_EQ(b.groups(Axis::ep), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(b.groups(Axis::etp).size(), 16U);
  EXPECT_EQ(b.groups({Axis::etp, Axis::ep}), b.groups(Axis::ep));
  EXPECT_EQ(b.groups(Axis::edp),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(b.groups({Axis::etp, Axis::ep, Axis::pp}),
            (Groups{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
  EXPECT_EQ(b.groups({Axis::tp, Axis::pp}),
            (Groups{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
  EXPECT_EQ(b.groups({Axis::tp, Axis::cp}), b.groups(Axis::ep));
  EXPECT_EQ(b.groups({Axis::tp, Axis::cp, Axis::dp}),
            (Groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_EQ(b.groups(Axis::pp), ParallelLayout({.tp = 2, .cp = 2, .dp = 2, .pp = 2}).groups(Axis::pp));
}

TEST(Layout, agrees_with_megatron_on_experts_that_are_cut_themselves) {
  const ParallelLayout c({.tp = 2, .cp = 2, .dp = 2, .ep = 2, .etp = 2});
  EXPECT_EQ(c.groups(Axis::ep), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(c.groups({Axis::etp, Axis::ep}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(c.groups(Axis::edp), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(Layout, knows_which_of_its_group_a_rank_is) {
  const RankOrder swapped{Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};
  for (const RankOrder& order : {usual_order, swapped}) {
    const ParallelLayout b({.tp = 2, .cp = 2, .dp = 2, .pp = 2, .ep = 4, .etp = 1}, order);
    for (const Axes along : {Axes{}, Axes{Axis::cp}, Axes{Axis::tp, Axis::dp}, Axes{Axis::ep, Axis::pp}})
      for (const auto& group : b.groups(along))
        for (std::size_t i = 0; i < group.size(); ++i) EXPECT_EQ(b.place(group[i], along), int(i));
  }
}

TEST(Layout, says_which_degrees_cannot_be) {
  EXPECT_EQ(refused([] { ParallelLayout({.tp = 0}); }),
            "layout: every degree must be at least 1, got tp 0, cp 1, dp 1, pp 1");
  EXPECT_EQ(
      refused([] { ParallelLayout({.tp = 2, .dp = 2, .ep = 3, .etp = 1}); }),
      "layout: the 4 ranks of one pipeline stage (tp 2, cp 1, dp 2) cannot be cut into ep 3 times etp 1: "
      "take degrees whose product divides 4");
  EXPECT_EQ(refused([] { ParallelLayout({.ep = 0}); }),
            "layout: experts' degrees must be at least 1, got ep 0, etp 1");
  EXPECT_EQ(refused([] {
              ParallelLayout({.tp = 2, .cp = 2, .dp = 2, .pp = 2, .ep = 4, .etp = 2},
                             {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp});
            }),
            "layout: where stages are not the slowest digit of a rank's number, ep 4 times etp 2 must be tp "
            "times cp, 4: take such degrees, or the usual order of ranks");
}
