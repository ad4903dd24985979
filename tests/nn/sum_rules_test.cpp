// What exact mode fixes, and that fast mode fixes nothing.
#include "weft/nn/sum_rules.h"

#include <gtest/gtest.h>

#include "weft/comm/threads.h"

using namespace weft;

namespace {

constexpr SumRules fast, exact{.exact = true};

}  // namespace

TEST(SumRules, cut_a_contraction_in_as_many_slabs_whoever_holds_them) {
  for (const int ranks : {1, 2, 4, 8}) {
    EXPECT_EQ(exact.slabs(ranks) * ranks, exact_slabs);
    EXPECT_EQ(fast.slabs(ranks), 1);
  }
  EXPECT_EQ(exact.term(Dtype::bf16), Dtype::f32);
  EXPECT_EQ(fast.term(Dtype::bf16), Dtype::bf16);
}

TEST(SumRules, add_a_key_heads_queries_in_as_many_parts_as_ranks_may_share_it) {
  EXPECT_EQ(exact.key_parts(8, 1), 8);
  EXPECT_EQ(exact.key_parts(32, 4), 2);
  EXPECT_EQ(exact.key_parts(12, 2), 2);
  EXPECT_EQ(exact.key_parts(8, 8), 1);
  EXPECT_EQ(exact.key_parts(12, 3), 1);  // four parts of three groups are no whole parts of each
  EXPECT_EQ(fast.key_parts(8, 1), 1);
}

TEST(SumRules, bring_tokens_together_in_exact_mode_only) {
  run_as_threads(2, [](Communicator& circle) {
    EXPECT_EQ(exact.tokens(&circle).ranks(), 2);
    EXPECT_FALSE(fast.tokens(&circle).cut());
  });
  EXPECT_EQ(fast.terms(Axis::tp), Axes{Axis::tp});
  EXPECT_TRUE(exact.terms(Axis::tp).empty());
  EXPECT_EQ(exact.samples_of_a_pass(4), 1);
  EXPECT_EQ(fast.samples_of_a_pass(4), 4);
}
