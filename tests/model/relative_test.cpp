// Buckets of distances, as T5's own program has them.
#include "weft/model/relative.h"

#include <gtest/gtest.h>

using namespace weft;

namespace {

/// Of a query so far behind the key; before it where that is negative.
std::int32_t bucket(std::int64_t ahead, bool causal) {
  constexpr std::int64_t length = 300;
  return relative_buckets({}, length, causal).at(std::size_t(ahead + length - 1));
}

}  // namespace

// 16 buckets a side: eight near distances, and eight from 8 to 128, each 1.41 times as far as the one before.
TEST(RelativeBuckets, tell_both_sides_apart) {
  EXPECT_EQ(bucket(0, false), 0);
  EXPECT_EQ(bucket(7, false), 7);
  EXPECT_EQ(bucket(8, false), 8);
  EXPECT_EQ(bucket(11, false), 8);
  EXPECT_EQ(bucket(12, false), 9);
  EXPECT_EQ(bucket(16, false), 10);
  EXPECT_EQ(bucket(127, false), 15);
  EXPECT_EQ(bucket(299, false), 15);
  EXPECT_EQ(bucket(-1, false), 17);
  EXPECT_EQ(bucket(-299, false), 31);
}

TEST(RelativeBuckets, of_a_decoder_know_no_keys_behind_the_query) {
  EXPECT_EQ(bucket(-5, true), 0);
  EXPECT_EQ(bucket(15, true), 15);
  EXPECT_EQ(bucket(16, true), 16);
  EXPECT_EQ(bucket(32, true), 21);
  EXPECT_EQ(bucket(113, true), 31);
  EXPECT_EQ(bucket(112, true), 30);
}
