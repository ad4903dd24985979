// weft tokenizer: what it reads, what it writes, what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/cli/tokenizer_lines.h"
#include "weft/cli/verbs.h"

namespace weft::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const LinePlace place{"corpus.jsonl", 7};
const std::string folder = WEFT_SOURCE_DIR "/tests/golden/text/";

struct Said {
  int exit = 0;
  std::string out;
};

Said run_words(const std::vector<std::string>& words) {
  const std::vector<std::string_view> args(words.begin(), words.end());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Said said;
  try {
    said.exit = tokenizer_verb().run(args);
  } catch (const Error&) {
    (void)::testing::internal::GetCapturedStdout();
    (void)::testing::internal::GetCapturedStderr();
    throw;
  }
  said.out = ::testing::internal::GetCapturedStdout();
  (void)::testing::internal::GetCapturedStderr();
  return said;
}

auto refusal(const std::vector<std::string>& words) {
  return [words] { (void)run_words(words); };
}

const std::string toy = "gpt2:" + folder + "toy_bpe_vocab.json," + folder + "toy_bpe_merges.txt";

TEST(TokenizerVerb, encodes_and_decodes_a_text) {
  EXPECT_EQ(run_words({"encode", "--tokenizer", toy, "--text", "hello world"}).out, "259 264\n");
  EXPECT_EQ(run_words({"decode", "--tokenizer", toy, "--text", "259 264"}).out, "hello world\n");
  EXPECT_EQ(run_words({"decode", "--tokenizer", toy, "--skip-special", "--text", "259 271"}).out, "hello\n");
}

TEST(TokenizerVerb, encodes_a_line_of_json_a_document) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb.jsonl";
  write_atomically(path, "{\"text\": \"hello\"}\n\n{\"text\": \"\"}\n");
  EXPECT_EQ(run_words({"encode", "--jsonl", "--tokenizer", toy, path.string()}).out,
            "{\"ids\": [259]}\n{\"ids\": []}\n");
}

TEST(TokenizerVerb, inspects_as_json) {
  const Said said = run_words({"inspect", "--json", "--tokenizer", toy, "--text", "hello"});
  EXPECT_EQ(said.out,
            "{\"padded\":384,\"pieces\":[{\"id\":259,\"token\":\"hello\"}],\"special\":{\"bos\":271,\"eod\":"
            "271,\"eos\":271,"
            "\"unk\":271},\"vocabulary\":272}\n");
}

TEST(TokenizerVerb, trains_what_it_can_open) {
  const auto folder_out = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb_trained";
  const auto corpus = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb.txt";
  write_atomically(corpus, "low lower lowest low lower lowest\n");
  EXPECT_EQ(
      run_words({"train", "--vocab-size", "260", "--output", folder_out.string(), corpus.string()}).exit, 0);
  EXPECT_EQ(run_words({"decode", "--tokenizer", "hf:" + folder_out.string(), "--text", "256 257 258"}).out,
            "lolow low\n");
}

TEST(TokenizerVerb, says_what_it_cannot_do) {
  EXPECT_THAT(refusal({}), ThrowsMessage<Error>("tokenizer: expected train, encode, decode, inspect"));
  EXPECT_THAT(
      refusal({"encod"}),
      ThrowsMessage<Error>(HasSubstr("tokenizer: 'encod' is none of train, encode, decode, inspect")));
  EXPECT_THAT(refusal({"train", "--output", "x"}),
              ThrowsMessage<Error>("tokenizer train: expected files of text or JSON lines to learn from"));
  EXPECT_THAT(refusal({"train", "file"}),
              ThrowsMessage<Error>("tokenizer train: expected --output DIRECTORY"));
  EXPECT_THAT(refusal({"train", "--output", "x", "corpus.jsonl.gz"}),
              ThrowsMessage<Error>("tokenizer train: corpus.jsonl.gz is compressed; unpack it first"));
  EXPECT_THAT(refusal({"decode", "--tokenizer", toy, "--text", "12 x"}),
              ThrowsMessage<Error>("tokenizer decode: 'x' is not an id"));
}

TEST(TokenizerLines, name_the_file_and_the_line_that_is_broken) {
  EXPECT_EQ(text_in(R"({"text": "a"})", "text", place), "a");
  EXPECT_THAT([] { (void)text_in("{", "text", place); },
              ThrowsMessage<Error>(HasSubstr("corpus.jsonl: line 7 is not JSON: ")));
  EXPECT_THAT([] { (void)text_in(R"({"body": "a"})", "text", place); },
              ThrowsMessage<Error>("corpus.jsonl: line 7 holds no text under 'text'"));
  EXPECT_THAT(ids_in(R"({"ids": [1, 2]})", place), ElementsAre(1, 2));
  EXPECT_THAT([] { (void)ids_in(R"({"ids": "a"})", place); },
              ThrowsMessage<Error>("corpus.jsonl: line 7 holds no list of numbers under 'ids'"));
  EXPECT_THAT(plain_ids_in("[1, 2]\n3"), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace weft::cli
