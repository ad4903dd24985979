// weft tokenizer: what it reads, what it writes, what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/data/pack.h"
#include "tests/support/sanitized.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
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

// Longer than what is read at a time, and without an end of line behind the last.
TEST(TokenizerVerb, encodes_and_decodes_packed_files_as_plain_ones) {
  std::string lines, text;
  const auto enough = std::size_t((3 << 20) / weft::testing::every(2));
  for (int k = 0; lines.size() < enough; ++k) {
    lines += "{\"text\": \"hello world " + std::to_string(k) + "\"}\r\n\n";
    text += "hello " + std::to_string(k) + "\n";
  }
  lines += "{\"text\": \"low\"}";
  const auto answer = [&](std::vector<std::string> words, const std::string& content) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb_packed_in";
    write_atomically(path, std::string_view(content));
    words.insert(words.end(), {"--tokenizer", toy, path.string()});
    return run_words(words).out;
  };
  const std::string plain = answer({"encode", "--jsonl"}, lines);
  EXPECT_TRUE(plain.starts_with("{\"ids\": [259, 264,"));
  EXPECT_EQ(answer({"encode", "--jsonl"}, data::gzipped(lines)), plain);
  EXPECT_EQ(answer({"encode", "--jsonl"}, data::zstandard(lines)), plain);
  EXPECT_EQ(answer({"decode", "--jsonl"}, data::zstandard(plain)), answer({"decode", "--jsonl"}, plain));
  const std::string ids = answer({"encode"}, text);
  EXPECT_EQ(answer({"encode"}, data::gzipped(text)), ids);
  EXPECT_EQ(answer({"decode"}, data::zstandard(ids)), text + "\n");
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

// Three kinds of files with the same texts, and text that is no JSON.
TEST(TokenizerVerb, learns_the_same_from_packed_files_as_from_plain_ones) {
  const auto folder_out = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb_packed";
  std::string text, lines;
  for (int k = 0; k < 3000; ++k) {
    const std::string words = "word" + std::to_string(k * k % 977) + " and low lower lowest";
    text += words + "\n";
    lines += "{\"text\": \"" + words + "\\n\"}\n";
  }
  const auto learned = [&](const std::string& name, const std::string& content) {
    const auto corpus = std::filesystem::path(::testing::TempDir()) / name;
    write_atomically(corpus, content);
    EXPECT_EQ(
        run_words({"train", "--vocab-size", "600", "--output", folder_out.string(), corpus.string()}).exit,
        0);
    return read_file(folder_out / "merges.txt");
  };
  const std::string merges = learned("tokenizer_verb_plain.txt", text);
  EXPECT_GT(std::count(merges.begin(), merges.end(), '\n'), 300);
  EXPECT_EQ(learned("tokenizer_verb_packed.txt.gz", data::gzipped(text)), merges);
  EXPECT_EQ(learned("tokenizer_verb_packed.txt.zst", data::zstandard(text)), merges);
  EXPECT_EQ(learned("tokenizer_verb_plain.jsonl", lines), merges);
  EXPECT_EQ(learned("tokenizer_verb_packed.jsonl.gz", data::gzipped(lines)), merges);
  EXPECT_EQ(learned("tokenizer_verb_packed.jsonl.zst", data::zstandard(lines)), merges);
}

// Larger than what is unpacked at a time.
TEST(TokenizerVerb, learns_the_same_whatever_is_unpacked_at_a_time) {
  const auto to = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb_batches";
  const auto plain = to.string() + ".txt", packed = to.string() + ".txt.zst";
  std::string text;
  for (int k = 0; text.size() < (9 << 20); ++k)
    text += "the word" + std::to_string(k % 5000) + " and\nmore of it\n";
  write_atomically(plain, text);
  write_atomically(packed, data::zstandard(text));
  const auto learned = [&](const std::string& corpus) {
    run_words({"train", "--vocab-size", "500", "--output", to.string(), corpus});
    return read_file(to / "tokenizer.json");
  };
  EXPECT_EQ(learned(packed), learned(plain));
}

TEST(TokenizerVerb, names_the_broken_line_of_a_packed_file) {
  const auto corpus = std::filesystem::path(::testing::TempDir()) / "tokenizer_verb_broken.jsonl.gz";
  write_atomically(corpus, data::gzipped("{\"text\": \"a\"}\n{\"body\": \"b\"}\n"));
  EXPECT_THAT(refusal({"train", "--output", "x", corpus.string()}),
              ThrowsMessage<Error>(corpus.string() + ": line 2 holds no text under 'text'"));
}

TEST(TokenizerVerb, says_what_it_cannot_do) {
  EXPECT_THAT(refusal({}), ThrowsMessage<Error>("tokenizer: expected train, encode, decode, inspect, chat"));
  EXPECT_THAT(
      refusal({"encod"}),
      ThrowsMessage<Error>(HasSubstr("tokenizer: 'encod' is none of train, encode, decode, inspect")));
  EXPECT_THAT(refusal({"train", "--output", "x"}),
              ThrowsMessage<Error>("tokenizer train: expected files of text or JSON lines to learn from"));
  EXPECT_THAT(refusal({"train", "file"}),
              ThrowsMessage<Error>("tokenizer train: expected --output DIRECTORY"));
  EXPECT_THAT(refusal({"decode", "--tokenizer", toy, "--text", "12 x"}),
              ThrowsMessage<Error>("tokenizer decode: 'x' is not an id"));
}

TEST(TokenizerVerb, ignores_no_option) {
  EXPECT_THAT(refusal({"encode", "--tokenizer", toy, "--json", "--text", "hello"}),
              ThrowsMessage<Error>("tokenizer encode: --json has no effect on it: leave it out"));
  EXPECT_THAT(refusal({"encode", "--tokenizer", toy, "--skip-special", "--text", "hello"}),
              ThrowsMessage<Error>("tokenizer encode: --skip-special has no effect on it: leave it out"));
  EXPECT_THAT(refusal({"inspect", "--tokenizer", toy, "--jsonl"}),
              ThrowsMessage<Error>("tokenizer inspect: --jsonl has no effect on it: leave it out"));
  EXPECT_THAT(refusal({"inspect", "--tokenizer", toy, "a.txt"}),
              ThrowsMessage<Error>("tokenizer inspect: it reads no file, found a.txt; --text gives a text"));
  EXPECT_THAT(
      refusal({"encode", "--tokenizer", toy, "--text", "hello", "a.txt"}),
      ThrowsMessage<Error>("tokenizer encode: --text and a.txt are both given: leave one of them out"));
  EXPECT_THAT(refusal({"decode", "--tokenizer", toy, "--jsonl", "--text", "1"}),
              ThrowsMessage<Error>("tokenizer decode: --text is one text, and --jsonl reads lines of JSON: "
                                   "leave one of them out"));
  EXPECT_THAT(refusal({"encode", "--tokenizer", toy, "--json-key", "t", "--text", "hello"}),
              ThrowsMessage<Error>("tokenizer encode: --json-key has no effect without --jsonl"));
}

TEST(TokenizerVerb, takes_an_empty_text_for_one) {
  EXPECT_EQ(run_words({"encode", "--tokenizer", toy, "--text", ""}).out, "\n");
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

TEST(TokenizerVerb, writes_conversations_as_a_model_reads_them) {
  const support::TemporaryDirectory files;
  const std::string said = (files / "said.jsonl").string(), jinja = (files / "chat.jinja").string();
  write_atomically(
      jinja, std::string_view("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %} "
                              "{% endfor %}{{ tools }}{{ x }}{{ add_generation_prompt }}"));
  write_atomically(said, std::string_view("[{\"content\": \"hello\"}]\n"
                                          "{\"messages\": [{\"content\": \"é\"}], \"tools\": [1], \"x\": 3, "
                                          "\"chat_template_kwargs\": {\"x\": 2}}\n"));
  EXPECT_EQ(run_words({"chat", "--chat-template", jinja, said}).out, "hello NoneFalse\né [1]2False\n");
  EXPECT_EQ(run_words({"chat", "--chat-template", jinja, "--answer-next", "--chat-template-kwargs",
                       "{\"x\": 4}", said})
                .out,
            "hello None4True\né [1]4True\n");
  EXPECT_EQ(run_words({"chat", "--chat-template", jinja, "--jsonl", said}).out,
            "{\"text\":\"hello NoneFalse\",\"answers\":[[0,5]]}\n"
            "{\"text\":\"é [1]2False\",\"answers\":[[0,2]]}\n");
  EXPECT_EQ(run_words({"chat", "--chat-template", "identity", "--tokenizer", toy, "--jsonl", said}).out,
            "{\"text\":\"hello\",\"ids\":[259],\"answers\":[]}\n{\"text\":\"é\",\"ids\":[127,102],"
            "\"answers\":[]}\n");
}

TEST(TokenizerVerb, a_conversation_without_a_template_is_refused) {
  EXPECT_THAT(refusal({"chat"}),
              ThrowsMessage<Error>("tokenizer chat: expected --tokenizer or --chat-template"));
  EXPECT_THAT(refusal({"chat", "--tokenizer", toy}),
              ThrowsMessage<Error>("tokenizer chat: there is no chat template beside " + folder +
                                   "toy_bpe_vocab.json (chat_template.jinja, or 'chat_template' in "
                                   "tokenizer_config.json); give one with --chat-template"));
  EXPECT_THAT(refusal({"chat", "--chat-template", "chatml"}),
              ThrowsMessage<Error>(
                  "chat template: 'chatml' is none of nemotron-h-aligned, nemotron-nano-v2, identity"));
}

}  // namespace
}  // namespace weft::cli
