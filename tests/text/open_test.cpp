// Opening by name: what each type needs, and what is refused.
#include "weft/text/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/source_dir.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using ::testing::ThrowsMessage;

const std::string folder = WEFT_SOURCE_DIR "/tests/golden/text/";

TEST(Open, short_names_say_type_and_files) {
  EXPECT_EQ(open_tokenizer(
                tokenizer_named("gpt2:" + folder + "toy_bpe_vocab.json," + folder + "toy_bpe_merges.txt"))
                ->size(),
            272);
  EXPECT_EQ(open_tokenizer(tokenizer_named("null:100"))->special("eod"), 99);
  EXPECT_EQ(open_tokenizer(tokenizer_named("byte"))->size(), 512);
  EXPECT_GT(open_tokenizer(tokenizer_named("bert:" + folder + "toy_wordpiece_vocab.txt"))->size(), 5);
}

TEST(Open, a_cased_bert_gets_a_hundred_sentinels) {
  const auto lower = open_tokenizer(tokenizer_named("bert:" + folder + "toy_wordpiece_vocab.txt"));
  const auto cased = open_tokenizer(tokenizer_named("bert-cased:" + folder + "toy_wordpiece_vocab.txt"));
  EXPECT_EQ(cased->size(), lower->size() + 100);
  EXPECT_EQ(cased->special("<extra_id_99>"), cased->size() - 1);
}

TEST(Open, a_berts_sentinels_come_behind_bounds_where_some_are_asked_for) {
  for (const char* name : {"bert:", "bert-cased:"}) {
    TokenizerOptions options = tokenizer_named(name + folder + "toy_wordpiece_vocab.txt");
    const auto words = open_tokenizer(tokenizer_named("bert:" + folder + "toy_wordpiece_vocab.txt"))->size();
    options.vocab_extra_ids = 3;
    const auto asked = open_tokenizer(options);
    EXPECT_EQ(asked->size(), words + 5);
    EXPECT_EQ(asked->special("bos"), words);
    EXPECT_EQ(asked->special("eos"), words + 1);
    EXPECT_EQ(asked->special("<extra_id_2>"), words + 4);
    EXPECT_EQ(asked->encode("[EOS]"), (std::vector<std::int32_t>{words + 1}));
    options.vocab_extra_ids = 0;
    options.legacy_tokenizer = true;
    EXPECT_EQ(open_tokenizer(options)->size(), words + 2);
  }
}

TEST(Open, the_old_form_is_berts_alone) {
  TokenizerOptions options = tokenizer_named("byte");
  options.legacy_tokenizer = true;
  EXPECT_THAT(
      [&] { (void)open_tokenizer(options); },
      ThrowsMessage<Error>("{legacy_tokenizer}: weft has the old form of BERT's vocabularies only, not of "
                           "ByteLevelTokenizer; leave it out"));
}

TEST(Open, says_what_a_type_needs) {
  const auto refuses = [](TokenizerOptions options) { return [options] { (void)open_tokenizer(options); }; };
  EXPECT_THAT(refuses({.tokenizer_type = "NullTokenizer"}),
              ThrowsMessage<Error>("NullTokenizer needs {vocab_size}"));
  EXPECT_THAT(refuses({.tokenizer_type = "GPT2BPETokenizer"}),
              ThrowsMessage<Error>("GPT2BPETokenizer needs {vocab_file}"));
  EXPECT_THAT(refuses({.tokenizer_type = "Llama2Tokenizer"}),
              ThrowsMessage<Error>("Llama2Tokenizer needs {tokenizer_model}"));
  EXPECT_THAT(refuses({.tokenizer_type = "NulTokenizer"}),
              ThrowsMessage<Error>("tokenizer: there is no type 'NulTokenizer', did you mean NullTokenizer"));
  EXPECT_THAT(refuses({.tokenizer_type = "MultimodalTokenizer"}),
              ThrowsMessage<Error>("tokenizer: weft has no MultimodalTokenizer"));
  EXPECT_THAT(refuses({}),
              ThrowsMessage<Error>(
                  "tokenizer: nothing says which one; give {tokenizer_type}, or {tokenizer_model} with "
                  "a file that ends in .json, .model or .tiktoken"));
  EXPECT_THAT([] { (void)tokenizer_named("gpt2:vocab.json"); },
              ThrowsMessage<Error>("tokenizer: 'gpt2:vocab.json', expected gpt2:vocab.json,merges.txt"));
}

TokenizerOptions gpt2_files() {
  return {.tokenizer_type = "GPT2BPETokenizer",
          .vocab_file = folder + "toy_bpe_vocab.json",
          .merge_file = folder + "toy_bpe_merges.txt",
          .tokenizer_model = {},
          .vocab_size = {},
          .tokenizer_special_tokens = {},
          .null_tokenizer_eod_id = {},
          .null_tokenizer_pad_id = {}};
}

TEST(Open, gives_gpt2_further_special_tokens_and_sentinels_behind_its_vocabulary) {
  TokenizerOptions options = gpt2_files();
  options.tokenizer_special_tokens = {"<|user|>", "hello"};
  options.vocab_extra_ids = 2;
  const auto tokenizer = open_tokenizer(options);
  EXPECT_EQ(tokenizer->size(), 275);
  EXPECT_EQ(tokenizer->special("<|user|>"), 272);
  EXPECT_EQ(tokenizer->special("<extra_id_1>"), 274);
  EXPECT_EQ(tokenizer->encode("hello<|user|><extra_id_0>"), (std::vector<std::int32_t>{259, 272, 273}));
  EXPECT_TRUE(tokenizer->is_special(272));
  EXPECT_EQ(tokenizer->special("eod"), 271);
}

TEST(Open, gives_bytes_sentinels_too) {
  TokenizerOptions options = tokenizer_named("byte");
  options.vocab_extra_ids = 3;
  EXPECT_EQ(open_tokenizer(options)->size(), 515);
  EXPECT_TRUE(open_tokenizer(options)->special("<extra_id_2>").has_value());
}

TEST(Open, refuses_tokens_that_a_type_cannot_take_in) {
  const auto refuses = [](TokenizerOptions options) { return [options] { (void)open_tokenizer(options); }; };
  TokenizerOptions numbers = tokenizer_named("null:100");
  numbers.tokenizer_special_tokens = {"<a>"};
  EXPECT_THAT(
      refuses(numbers),
      ThrowsMessage<Error>("NullTokenizer takes no {tokenizer_special_tokens}: its tokens are numbers"));
  numbers.tokenizer_special_tokens = {};
  numbers.vocab_extra_ids = 100;
  EXPECT_THAT(refuses(numbers),
              ThrowsMessage<Error>("NullTokenizer takes no {vocab_extra_ids}: its tokens are numbers; give a "
                                   "larger {vocab_size}"));
  TokenizerOptions ranks = tokenizer_named("tiktoken:none.json");
  ranks.vocab_extra_ids = 1;
  EXPECT_THAT(refuses(ranks), ThrowsMessage<Error>("TikTokenizer takes no {vocab_extra_ids}; give the "
                                                   "sentinels with {tokenizer_special_tokens}"));
  TokenizerOptions less = gpt2_files();
  less.vocab_extra_ids = -1;
  EXPECT_THAT(refuses(less), ThrowsMessage<Error>("{vocab_extra_ids} -1: expected 0 or more"));
}

TEST(Open, says_which_settings_a_type_does_not_read) {
  TokenizerOptions options = gpt2_files();
  EXPECT_THAT(unread_options(options), ::testing::IsEmpty());
  options.tokenizer_type = "NullTokenizer";
  options.tiktoken_pattern = "v1";
  EXPECT_THAT(unread_options(options),
              ::testing::ElementsAre("no effect here: {vocab_file} (NullTokenizer does not read it)",
                                     "no effect here: {merge_file} (NullTokenizer does not read it)",
                                     "no effect here: {tiktoken_pattern} (NullTokenizer does not read it)"));
}

}  // namespace
}  // namespace weft
