// Training: what is merged, in which order, and that threads do not matter.
#include "weft/text/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/text/random_text.h"
#include "weft/base/error.h"
#include "weft/text/byte_level.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

WordCounts counted(const std::vector<std::string>& texts, int threads = 1) {
  return count_words(
      static_cast<std::int64_t>(texts.size()),
      [&](std::int64_t part, const auto& each) { each(texts[static_cast<std::size_t>(part)]); },
      gpt2_pattern(), threads);
}

TrainedBpe trained(const std::vector<std::string>& texts, std::int64_t merges, int threads = 1) {
  return train_bpe(counted(texts, threads), gpt2_pattern(),
                   {.vocabulary = 257 + merges, .min_frequency = 1, .special = {"<|endoftext|>"}});
}

std::vector<std::string> merges_of(const TrainedBpe& bpe) {
  std::vector<std::string> out;
  for (const auto& [left, right] : bpe.merges) out.push_back(left + " " + right);
  return out;
}

TEST(Training, merges_the_most_frequent_pair_first) {
  EXPECT_THAT(merges_of(trained({"abab abab"}, 2)), ElementsAre("a b", "ab ab"));
}

TEST(Training, merges_the_pair_of_smaller_ids_among_equals) {
  EXPECT_THAT(merges_of(trained({"zy", "ba"}, 2)), ElementsAre("b a", "z y"));
}

TEST(Training, stops_where_no_pair_is_frequent_enough) {
  const auto bpe = train_bpe(counted({"abc abc xyz"}), gpt2_pattern(),
                             {.vocabulary = 1000, .min_frequency = 2, .special = {"<|endoftext|>"}});
  EXPECT_THAT(merges_of(bpe), ElementsAre("a b", "ab c"));
  EXPECT_EQ(bpe.tokens.size(), 259u);
  EXPECT_EQ(bpe.tokens.back(), "<|endoftext|>");
  EXPECT_EQ(bpe.tokens.front(), "!");
}

RC_GTEST_PROP(Training, gives_the_same_merges_whatever_the_threads_and_the_order_of_texts, ()) {
  auto texts = *rc::gen::container<std::vector<std::string>>(weft::testing::random_text(30));
  const auto one = merges_of(trained(texts, 50));
  RC_ASSERT(merges_of(trained(texts, 50, 3)) == one);
  std::reverse(texts.begin(), texts.end());
  RC_ASSERT(merges_of(trained(texts, 50)) == one);
}

RC_GTEST_PROP(Training, makes_a_tokenizer_that_gives_its_texts_back, ()) {
  const std::string text = *weft::testing::random_text();
  const auto bpe = trained({text}, 30);
  const auto tokenizer = make_gpt2(vocab_json(bpe), merges_txt(bpe));
  RC_ASSERT(tokenizer->decode(tokenizer->encode(text)) == text);
  RC_ASSERT(tokenizer->size() == static_cast<std::int32_t>(bpe.tokens.size()));
}

RC_GTEST_PROP(Training, parts_of_a_text_have_the_same_words_as_the_whole, ()) {
  std::string text;
  for (int k = 0; k < 20; ++k) text += *weft::testing::random_text(30) + "x\n";
  std::vector<std::string> parts;
  for (const ByteRange& part : parts_of(text, 40))
    parts.push_back(text.substr(part.begin, part.end - part.begin));
  const WordCounts whole = counted({text}), cut = counted(parts);
  RC_ASSERT(whole.size() == cut.size());
  RC_ASSERT(merges_of(trained({text}, 40)) == merges_of(trained(parts, 40)));
}

TEST(Training, refuses_a_vocabulary_that_cannot_hold_the_bytes) {
  EXPECT_THAT(
      [] { (void)trained({"a"}, -1); },
      ThrowsMessage<Error>("tokenizer train: a vocabulary of 256, expected at least 256 bytes and 1 special "
                           "tokens: 257"));
  EXPECT_THAT([] { (void)train_bpe(counted({"a"}), gpt2_pattern(), {.vocabulary = 300, .special = {"a"}}); },
              ThrowsMessage<Error>("tokenizer train: special token 'a' is a token already"));
}

}  // namespace
}  // namespace weft
