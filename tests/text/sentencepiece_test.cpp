// SentencePiece: a small model kept beside the tests, against what the original made with it.
#include "weft/text/sentencepiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {
namespace {

using ::testing::ThrowsMessage;
using Ids = std::vector<std::int32_t>;

const std::string folder = WEFT_SOURCE_DIR "/tests/golden/text/";

TEST(SentencePiece, encodes_and_decodes_as_the_original_does) {
  const auto tokenizer = make_sentencepiece(read_file(folder + "toy.model"), {.special = {}});
  const auto golden = nlohmann::json::parse(read_file(folder + "sentencepiece.json"));
  ASSERT_GE(golden.size(), 10u);
  for (const auto& one : golden) {
    EXPECT_EQ(tokenizer->encode(one.at("text").get<std::string>()), one.at("ids").get<Ids>())
        << one.at("text");
    EXPECT_EQ(tokenizer->decode(one.at("ids").get<Ids>()), one.at("decoded").get<std::string>());
  }
}

TEST(SentencePiece, special_tokens_of_the_old_way_cut_the_text) {
  const std::string model = read_file(folder + "toy.model");
  const auto plain = make_sentencepiece(model, {.special = {}});
  const auto tokenizer = make_sentencepiece(model, {.legacy = true, .special = {"<sep>"}});
  EXPECT_EQ(tokenizer->size(), plain->size() + 1);
  Ids expected = plain->encode("the");
  expected.push_back(plain->size());
  const Ids rest = plain->encode("of");
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(tokenizer->encode("the<sep>of"), expected);
  EXPECT_EQ(tokenizer->decode(expected), "the <sep> of");
  EXPECT_EQ(tokenizer->special("sep"), plain->size());
}

TEST(SentencePiece, refuses_what_is_no_model_and_tokens_it_cannot_take) {
  EXPECT_THAT([] { (void)make_sentencepiece("no model", {.special = {}}); },
              ThrowsMessage<Error>("SentencePiece: the model breaks off or is none, at byte 1 of 8"));
  EXPECT_THAT([] { (void)make_sentencepiece("", {.special = {}}); },
              ThrowsMessage<Error>("SentencePiece: the model holds no piece"));
  EXPECT_THAT([] { (void)make_sentencepiece(std::string_view("\x0a\x02\x0a\x00", 4), {.special = {}}); },
              ThrowsMessage<Error>("SentencePiece: piece 0 is empty, holds a zero byte or is not UTF-8"));
  EXPECT_THAT([] { (void)make_sentencepiece(read_file(folder + "toy.model"), {.special = {"<x>"}}); },
              ThrowsMessage<Error>("SentencePiece: 1 special tokens, which a model takes at training or with "
                                   "{tokenizer_sentencepiece_legacy}"));
}

}  // namespace
}  // namespace weft
