#include "weft/base/hash.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

using namespace weft;

TEST(Hash, is_xxh3_128_as_xxhsum_prints_it) {
  EXPECT_EQ(hash("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash("abc").hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, does_not_know_the_borders_of_the_pieces) {
  EXPECT_TRUE(rc::check("pieces == whole", [](const std::vector<std::string>& pieces) {
    std::string whole;
    Hasher hasher;
    for (const std::string& piece : pieces) {
      hasher.add(piece);
      whole += piece;
      RC_ASSERT(hasher.hash() == hash(whole));
    }
  }));
}

TEST(Hash, holds_across_a_long_stream_that_is_moved_on_the_way) {
  std::string whole;
  Hasher first;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece = std::to_string(i * 7919);
    first.add(piece);
    whole += piece;
  }
  Hasher second = std::move(first);
  second.add("end");
  EXPECT_EQ(second.hash(), hash(whole + "end"));
}

TEST(Hash, tells_a_thousand_texts_apart_and_orders_them) {
  std::set<Hash> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(hash(std::to_string(i)));
  EXPECT_EQ(seen.size(), 1000u);
}
