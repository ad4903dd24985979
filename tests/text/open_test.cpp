// Opening by name: what each type needs, and what is refused.
#include "weft/text/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Open, says_what_a_type_needs) {
  const auto refuses = [](TokenizerOptions options) { return [options] { (void)open_tokenizer(options); }; };
  EXPECT_THAT(refuses({.tokenizer_type = "NullTokenizer"}),
              ThrowsMessage<Error>("NullTokenizer needs --vocab-size"));
  EXPECT_THAT(refuses({.tokenizer_type = "GPT2BPETokenizer"}),
              ThrowsMessage<Error>("GPT2BPETokenizer needs --vocab-file"));
  EXPECT_THAT(refuses({.tokenizer_type = "Llama2Tokenizer"}),
              ThrowsMessage<Error>("Llama2Tokenizer needs --tokenizer-model"));
  EXPECT_THAT(refuses({.tokenizer_type = "NulTokenizer"}),
              ThrowsMessage<Error>("tokenizer: there is no type 'NulTokenizer', did you mean NullTokenizer"));
  EXPECT_THAT(refuses({.tokenizer_type = "SFTTokenizer"}),
              ThrowsMessage<Error>("tokenizer: weft has no SFTTokenizer"));
  EXPECT_THAT(refuses({}),
              ThrowsMessage<Error>(
                  "tokenizer: nothing says which one; give --tokenizer-type, or --tokenizer-model with "
                  "a file that ends in .json, .model or .tiktoken"));
  EXPECT_THAT([] { (void)tokenizer_named("gpt2:vocab.json"); },
              ThrowsMessage<Error>("tokenizer: 'gpt2:vocab.json', expected gpt2:vocab.json,merges.txt"));
}

}  // namespace
}  // namespace weft
