// Tokens of the files beside tokenizer.json: each case is one that transformers 5 was asked
// (tests/oracle/text.py draws more).
#include "weft/text/config_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

// Words of small letters, and one token that is cut out.
constexpr const char* words = R"({
  "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2, "</s>": 3, "<t>": 4}},
  "normalizer": {"type": "Lowercase"},
  "pre_tokenizer": {"type": "WhitespaceSplit"},
  "added_tokens": [{"id": 4, "content": "<t>", "special": false, "normalized": true}]})";

std::unique_ptr<Tokenizer> open(HuggingFaceFiles files) {
  files.tokenizer = words;
  return make_huggingface(files, {});
}

TEST(ConfigTokens, a_name_that_no_token_spells_is_a_token_behind_all) {
  const auto t = open({.config = R"({"pad_token": "<pad>", "bos_token": "<s>"})"});
  EXPECT_EQ(t->size(), 7);
  EXPECT_EQ(t->special("bos"), 5);  // in the order of the parts, not of the file
  EXPECT_EQ(t->special("pad"), 6);
  EXPECT_TRUE(t->is_special(6));
  EXPECT_THAT(t->encode("<s>a<pad>"), ElementsAre(5, 1, 6));
}

TEST(ConfigTokens, a_word_of_the_vocabulary_that_has_a_name_is_cut_out) {
  EXPECT_THAT(open({})->encode("a</s>b"), ElementsAre(0));
  EXPECT_THAT(open({.config = R"({"eos_token": "</s>"})"})->encode("a</s>b"), ElementsAre(1, 3, 2));
}

TEST(ConfigTokens, numbers_give_the_order_alone) {
  const auto t = open({.config = R"({"added_tokens_decoder": {"90": {"content": "<y>", "special": true},
    "8": {"content": "<x>", "special": false, "normalized": false}}, "eos_token": "<x>"})"});
  EXPECT_THAT(t->encode("<x>a<y>"), ElementsAre(5, 1, 6));
  EXPECT_TRUE(t->is_special(5));  // as whatever has a name
  EXPECT_EQ(t->special("eod"), 5);
}

TEST(ConfigTokens, a_number_changes_how_a_known_token_is_looked_for) {
  EXPECT_THAT(open({})->encode("<T> a"), ElementsAre(4, 1));
  const auto t = open({.config = R"({"added_tokens_decoder": {"4": {"content": "<t>", "special": true,
    "normalized": false, "single_word": true}}})"});
  EXPECT_THAT(t->encode("<T> a"), ElementsAre(4, 1));  // a word of the vocabulary
  EXPECT_THAT(t->encode("<T>a"), ElementsAre(0));
  EXPECT_THAT(t->encode("<t>a"), ElementsAre(0));
  EXPECT_THAT(t->encode("<t>.a"), ElementsAre(4, 0));
  EXPECT_TRUE(t->is_special(4));
}

TEST(ConfigTokens, further_ones_and_a_models_own_come_last) {
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const std::string list = std::string("\"") + key + R"(": ["<x>", {"content": "<y>", "special": true}])";
    const auto t = open({.config = "{" + list + R"(, "image_token": "<image>", "pad_token": "<pad>"})"});
    EXPECT_THAT(t->encode("<pad><image><x><y>"), ElementsAre(5, 6, 7, 8)) << key;
  }
  const auto named = open({.config = R"({"extra_special_tokens": {"image_token": "<image>"}})"});
  EXPECT_THAT(named->encode("a <image>"), ElementsAre(1, 5));
}

TEST(ConfigTokens, an_older_map_and_list_count_where_the_configuration_has_no_numbers) {
  const HuggingFaceFiles files{
      .config = R"({"eos_token": "<old>"})",
      .special = R"({"eos_token": {"content": "<new>", "normalized": false, "rstrip": true}})",
      .added = R"({"<later>": 9, "<sooner>": 7})"};
  const auto t = open(files);
  EXPECT_THAT(t->encode("<sooner><later><new> <old>"), ElementsAre(5, 6, 7, 0));
  EXPECT_EQ(t->special("eos"), 7);
  EXPECT_FALSE(t->is_special(5));
  HuggingFaceFiles numbered = files;
  numbered.config = R"({"eos_token": "<old>", "added_tokens_decoder": {}})";
  EXPECT_EQ(open(numbered)->token(open(numbered)->special("eos").value()), "<old>");
}

TEST(ConfigTokens, special_tokens_are_text_where_they_are_to_be_split) {
  EXPECT_THAT(
      open({.config = R"({"eos_token": "</s>", "split_special_tokens": true})"})->encode("a</s> <t>b"),
      ElementsAre(0, 4, 2));
}

TEST(ConfigTokens, say_what_is_wrong_with_which_file) {
  const auto says = [](const char* message) { return ThrowsMessage<Error>(::testing::HasSubstr(message)); };
  EXPECT_THAT([] { open({.config = "[]"}); }, says("tokenizer_config.json: expected an object"));
  EXPECT_THAT([] { open({.config = R"({"added_tokens_decoder": []})"}); },
              says("tokenizer_config.json: added_tokens_decoder is no object"));
  EXPECT_THAT([] { open({.config = R"({"added_tokens_decoder": {"x": {"content": "<x>"}}})"}); },
              says("tokenizer_config.json: added_tokens_decoder has 'x', expected numbers, each with a "
                   "token's content"));
  EXPECT_THAT([] { open({.config = R"({"extra_special_tokens": 3})"}); },
              says("tokenizer_config.json: its further special tokens are 3, expected a list"));
  EXPECT_THAT([] { open({.special = "3"}); }, says("special_tokens_map.json: expected an object"));
  EXPECT_THAT([] { open({.added = R"({"<x>": "7"})"}); },
              says(R"(added_tokens.json: '<x>' has "7" for a number)"));
}

}  // namespace
}  // namespace weft
