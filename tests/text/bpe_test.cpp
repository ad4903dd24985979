// BytePairs: merging, short and long, and what tiktoken's ranks mean.
#include "weft/text/bpe.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ctime>
#include <map>

namespace weft {
namespace {

using Ids = std::vector<std::int32_t>;

// The 256 bytes, then one token for each merge.
struct Vocabulary {
  BytePairParts parts;
  Vocabulary() {
    for (int byte = 0; byte < 256; ++byte) parts.tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::int32_t add(std::int32_t left, std::int32_t right) {
    const auto id = static_cast<std::int32_t>(parts.tokens.size());
    const auto rank = static_cast<std::int32_t>(parts.merges.size());
    parts.merges.push_back({left, right, id, rank});
    parts.tokens.push_back(parts.tokens[static_cast<std::size_t>(left)] +
                           parts.tokens[static_cast<std::size_t>(right)]);
    return id;
  }
};

Ids encode(const BytePairs& pairs, std::string_view piece) {
  Ids ids;
  pairs.encode(piece, ids);
  return ids;
}

TEST(BytePairs, merges_the_lowest_rank_first_and_the_leftmost_among_equals) {
  Vocabulary v;
  const auto bc = v.add('b', 'c');
  v.add('a', 'b');
  const auto aa = v.add('a', 'a');
  const BytePairs pairs(v.parts);
  EXPECT_EQ(encode(pairs, "abc"), (Ids{'a', bc}));
  EXPECT_EQ(encode(pairs, "aaa"), (Ids{aa, 'a'}));
}

TEST(BytePairs, a_token_that_merges_cannot_make_is_found_whole_only_where_asked) {
  Vocabulary v;
  v.add('b', 'c');
  v.parts.tokens.emplace_back("abc");
  EXPECT_EQ(encode(BytePairs(v.parts), "abc"), (Ids{'a', 256}));
  v.parts.whole_first = true;
  EXPECT_EQ(encode(BytePairs(v.parts), "abc"), (Ids{257}));
}

TEST(BytePairs, a_byte_without_a_token_is_left_out) {
  Vocabulary v;
  v.parts.tokens['x'].clear();
  EXPECT_EQ(encode(BytePairs(v.parts), "axb"), (Ids{'a', 'b'}));
}

TEST(BytePairs, ranks_alone_give_every_merge_that_makes_a_token) {
  Vocabulary v;
  v.parts.tokens.insert(v.parts.tokens.end(), {"ab", "bc", "abc"});
  Ids ids(v.parts.tokens.size());
  for (std::size_t k = 0; k < ids.size(); ++k) ids[k] = static_cast<std::int32_t>(k);
  const auto merges = merges_of_ranks(v.parts.tokens, ids);
  ASSERT_EQ(merges.size(), 4u);
  EXPECT_EQ(merges[2].left, 'a');
  EXPECT_EQ(merges[2].right, 257);
  EXPECT_EQ(merges[3].result, 258);
  EXPECT_EQ(merges[3].rank, 258);
}

// A few merges over a tiny alphabet, so that long chains and equal pairs are frequent.
Vocabulary random_vocabulary() {
  Vocabulary v;
  const auto count = *rc::gen::inRange(1, 40);
  std::map<std::pair<std::int32_t, std::int32_t>, bool> seen;
  for (int k = 0; k < count; ++k) {
    const auto pick = [&] {
      const auto symbols = static_cast<std::int32_t>(v.parts.tokens.size()) - 256 + 3;
      const auto n = *rc::gen::inRange(0, symbols);
      return n < 3 ? 'a' + n : 256 + n - 3;
    };
    const auto left = pick(), right = pick();
    if (v.parts.tokens.back().size() < 64 && seen.try_emplace({left, right}, true).second) v.add(left, right);
  }
  return v;
}

RC_GTEST_PROP(BytePairs, the_heap_of_long_words_and_the_scan_of_short_ones_agree, ()) {
  const Vocabulary v = random_vocabulary();
  const Joiner joiner{PairTable(v.parts.merges)};
  const auto length = *rc::gen::inRange<std::size_t>(1, Joiner::long_word);
  const auto word = *rc::gen::container<Ids>(length, rc::gen::inRange<std::int32_t>('a', 'd'));
  Ids scanned = word;
  scanned.resize(joiner.join_short(scanned.data(), scanned.size()));
  // The same word behind and before letters that join with nothing is long.
  Ids padded(Joiner::long_word, 'z');
  padded.insert(padded.end(), word.begin(), word.end());
  joiner.join(padded);
  RC_ASSERT(Ids(padded.begin() + Joiner::long_word, padded.end()) == scanned);
}

RC_GTEST_PROP(BytePairs, a_cache_changes_nothing, ()) {
  const Vocabulary v = random_vocabulary();
  const BytePairs pairs(v.parts);
  WordCache cache;
  for (int round = 0; round < 20; ++round) {
    const auto word = *rc::gen::container<std::string>(rc::gen::inRange('a', 'd'));
    Ids cached, plain;
    pairs.encode(word, cached, cache);
    pairs.encode(word, cached, cache);
    pairs.encode(word, plain);
    plain.insert(plain.end(), plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(plain.size()));
    RC_ASSERT(cached == plain);
  }
}

TEST(BytePairs, one_enormous_word_takes_its_length_times_a_logarithm) {
  Vocabulary v;
  auto last = v.add('a', 'a');
  for (int k = 0; k < 10; ++k) last = v.add(last, last);
  const BytePairs pairs(v.parts);
  // Of its own time: a busy machine gives it less of a minute. Quadratic work would be 10^12 steps; the limit
  // is two orders above what this takes.
  const std::clock_t start = std::clock();
  EXPECT_EQ(encode(pairs, std::string(1 << 20, 'a')), Ids(1 << 9, last));
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace weft
