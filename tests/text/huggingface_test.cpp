// tokenizer.json and BERT's vocab.txt: the parts that the live comparison found worth keeping.
#include "weft/text/huggingface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::ThrowsMessage;
using Ids = std::vector<std::int32_t>;

json word_level() {
  const json vocab{{"<unk>", 0}, {"a", 1},     {"b", 2}, {"a b", 3},
                   {"[CLS]", 4}, {"[SEP]", 5}, {"x", 6}, {"<t>", 7}};
  return {{"model", {{"type", "WordLevel"}, {"unk_token", "<unk>"}, {"vocab", vocab}}},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}}};
}

std::unique_ptr<Tokenizer> open(const json& file, const HuggingFaceOptions& options = {}) {
  return make_huggingface({.tokenizer = file.dump(), .config = {}, .special = {}}, options);
}

Ids encode(const json& file, const std::string& text) { return open(file)->encode(text); }

TEST(HuggingFace, words_that_are_not_known_are_the_unknown_token) {
  EXPECT_THAT(encode(word_level(), "a  b\u3000c"), ElementsAre(1, 2, 0));
}

TEST(HuggingFace, a_template_goes_around_the_text_unless_told_not_to) {
  json file = word_level();
  const auto special = [](const char* id) { return json{{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; };
  const json cls{{"id", "[CLS]"}, {"ids", {4}}}, sep{{"id", "[SEP]"}, {"ids", {5}}};
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {special("[CLS]"), {{"Sequence", {{"id", "A"}}}}, special("[SEP]")}},
                            {"special_tokens", {{"[CLS]", cls}, {"[SEP]", sep}}}};
  EXPECT_THAT(encode(file, "a"), ElementsAre(4, 1, 5));
  EXPECT_THAT(open(file, {.include_special = false, .special = {}})->encode("a"), ElementsAre(1));
}

// As tokenizers 0.22 has them: an empty text is found between all letters, an anchor where it holds.
TEST(HuggingFace, patterns_that_match_nothing_cut_and_are_replaced) {
  json file = word_level();
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}, {"invert", false}};
  EXPECT_THAT(encode(file, "abx"), ElementsAre(1, 2, 6));
  file["pre_tokenizer"]["pattern"] = {{"Regex", "(?=b)"}};
  EXPECT_THAT(encode(file, "abb"), ElementsAre(1, 2, 2));
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "^"}}}, {"content", "a"}};
  EXPECT_THAT(encode(file, "b"), ElementsAre(1, 2));
  file["normalizer"]["pattern"] = {{"String", ""}};
  EXPECT_THAT(encode(file, "b"), ElementsAre(1, 0));  // "aba", cut before the b
}

json with_added(const char* flag) {
  json file = word_level();
  file["added_tokens"] = {{{"id", 7}, {"content", "<t>"}, {"special", true}, {flag, true}}};
  return file;
}

TEST(HuggingFace, an_added_token_takes_the_white_space_it_is_told_to) {
  json file = with_added("lstrip");
  file.erase("pre_tokenizer");
  EXPECT_THAT(encode(file, "a <t>b"), ElementsAre(1, 7, 2));
  file = with_added("rstrip");
  file.erase("pre_tokenizer");
  EXPECT_THAT(encode(file, "a<t> b"), ElementsAre(1, 7, 2));
}

TEST(HuggingFace, a_single_word_is_none_beside_letters) {
  EXPECT_THAT(encode(with_added("single_word"), "<t> a<t>"), ElementsAre(7, 0));
}

TEST(HuggingFace, special_tokens_given_come_behind_the_vocabulary) {
  const auto tokenizer = open(word_level(), {.include_special = true, .special = {"<new>"}});
  EXPECT_EQ(tokenizer->size(), 9);
  EXPECT_THAT(tokenizer->encode("a<new>"), ElementsAre(1, 8));
}

TEST(HuggingFace, names_come_from_the_files_beside_and_fill_each_other) {
  const auto tokenizer =
      make_huggingface({.tokenizer = word_level().dump(),
                        .config = R"({"eos_token": {"content": "[SEP]"}, "cls_token": "[CLS]"})",
                        .special = {}},
                       {});
  EXPECT_EQ(tokenizer->special("eod"), 5);
  EXPECT_EQ(tokenizer->special("sep"), 5);
  EXPECT_EQ(tokenizer->special("bos"), 4);
  EXPECT_EQ(tokenizer->special("mask"), std::nullopt);
}

TEST(HuggingFace, an_ordinary_word_pad_is_no_padding) {
  json file = word_level();
  file["model"]["vocab"]["pad"] = 8;
  EXPECT_EQ(open(file, {})->special("pad"), std::nullopt);
}

json unigram(bool fallback) {
  json vocab = json::array({json::array({"<unk>", 0.0}), json::array({"a", -1.0}), json::array({"b", -1.0}),
                            json::array({"ab", -1.5}), json::array({"<0x7A>", -9.0})});
  return {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}, {"byte_fallback", fallback}}}};
}

TEST(Unigram, takes_the_most_probable_cut_and_joins_what_is_unknown) {
  EXPECT_THAT(encode(unigram(false), "aabzza"), ElementsAre(1, 3, 0, 1));
  EXPECT_THAT(encode(unigram(true), "zza"), ElementsAre(4, 4, 1));
}

json char_bpe(const json& more) {
  json model{{"type", "BPE"},
             {"vocab", {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}, {"##b", 4}, {"b</w>", 5}, {"aab", 6}}},
             {"merges", json::array({json::array({"a", "b"})})},
             {"unk_token", "<unk>"}};
  model.update(more);
  return {{"model", model}};
}

TEST(CharBpe, fuses_unknown_characters_where_told) {
  EXPECT_THAT(encode(char_bpe(json::object()), "zzab"), ElementsAre(0, 0, 3));
  EXPECT_THAT(encode(char_bpe({{"fuse_unk", true}}), "zzab"), ElementsAre(0, 3));
}

TEST(CharBpe, takes_a_whole_word_first_where_told) {
  EXPECT_THAT(encode(char_bpe(json::object()), "aab"), ElementsAre(1, 3));
  EXPECT_THAT(encode(char_bpe({{"ignore_merges", true}}), "aab"), ElementsAre(6));
}

TEST(CharBpe, puts_affixes_on_the_characters) {
  EXPECT_THAT(encode(char_bpe({{"merges", json::array()}, {"continuing_subword_prefix", "##"}}), "bb"),
              ElementsAre(2, 4));
  EXPECT_THAT(encode(char_bpe({{"merges", json::array()}, {"end_of_word_suffix", "</w>"}}), "bb"),
              ElementsAre(2, 5));
}

TEST(HuggingFace, refuses_what_it_cannot_follow) {
  const auto refuses = [](const json& file) { return [file] { (void)open(file); }; };
  EXPECT_THAT(refuses(char_bpe({{"dropout", 0.1}})),
              ThrowsMessage<Error>(
                  "tokenizer.json: the model has dropout 0.1, which weft does not draw; set it to null"));
  EXPECT_THAT(refuses(char_bpe({{"merges", {"a q"}}})),
              ThrowsMessage<Error>("tokenizer.json: merge 0 needs 'q', which the vocabulary does not hold"));
  json file = word_level();
  file["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
  EXPECT_THAT(refuses(file),
              ThrowsMessage<Error>("tokenizer.json: weft does not cut by script (UnicodeScripts)"));
  file["pre_tokenizer"] = {{"type", "Magic"}};
  EXPECT_THAT(refuses(file),
              ThrowsMessage<Error>("tokenizer.json: there is no pre_tokenizer of type 'Magic'"));
  EXPECT_THAT(refuses(json::array()),
              ThrowsMessage<Error>("tokenizer.json: expected an object with a 'model'"));
}

const std::string folder = WEFT_SOURCE_DIR "/tests/golden/text/";

TEST(Bert, cuts_words_as_the_original_did) {
  const std::string vocab = read_file(folder + "toy_wordpiece_vocab.txt");
  const auto golden = json::parse(read_file(folder + "wordpiece.json"));
  ASSERT_GE(golden.size(), 10u);
  for (const auto& one : golden) {
    // The vectors come from the old wrapper, which did not look for special tokens in text; today's does.
    if (one.at("text").get<std::string>().find("[CLS]") != std::string::npos) continue;
    const auto tokenizer = make_bert(vocab, {.lower = one.at("do_lower_case"), .special = {}});
    EXPECT_EQ(tokenizer->encode(one.at("text").get<std::string>()), one.at("ids").get<Ids>())
        << one.at("text");
  }
}

TEST(Bert, adds_sentinels_behind_the_vocabulary_and_names_its_parts) {
  const auto tokenizer = make_bert("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n",
                                   {.lower = false, .special = {"<extra_id_0>"}});
  EXPECT_EQ(tokenizer->size(), 8);
  EXPECT_EQ(tokenizer->special("<extra_id_0>"), 7);
  EXPECT_EQ(tokenizer->special("mask"), 4);
  EXPECT_EQ(tokenizer->special("eod"), 3);
  EXPECT_THAT(tokenizer->encode("unable[MASK]"), ElementsAre(5, 6, 4));
  EXPECT_EQ(tokenizer->decode(Ids{5, 6}), "unable");
}

// Letters alone, so that the ids show the words.
std::string letters_of(const json& normalizer, const json& cutter, const std::string& text) {
  json vocab{{"<unk>", 0}};
  for (const char* letter : {"\u2581", "1", "2", "4", "\u2044", "a", "b", "\u00e9"})
    vocab[letter] = vocab.size();
  const json model{{"type", "BPE"}, {"unk_token", "<unk>"}, {"vocab", vocab}, {"merges", json::array()}};
  const json metaspace{
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}, {"split", false}};
  const json steps{
      {"type", "Sequence"},
      {"pretokenizers", cutter.is_null() ? json::array({metaspace}) : json::array({cutter, metaspace})}};
  const auto tokenizer = open(json{{"model", model}, {"pre_tokenizer", steps}, {"normalizer", normalizer}});
  std::string out;
  for (const std::int32_t id : tokenizer->encode(text)) out += tokenizer->token(id);
  return out;
}

TEST(HuggingFace, metaspace_leads_every_word_that_comes_of_the_texts_first_character) {
  const json words{{"type", "Whitespace"}}, decompose{{"type", "NFKD"}}, compose{{"type", "NFC"}},
      strip{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  EXPECT_EQ(letters_of(decompose, words, "\u00bd\u00b2a"), "\u25811\u2581\u2044\u258122a");
  EXPECT_EQ(letters_of(decompose, nullptr, "\u00bd\u00b2a"), "\u25811\u204422a");
  EXPECT_EQ(letters_of(compose, words, "e\u0301 a"), "\u2581\u00e9a");
  EXPECT_EQ(letters_of(strip, nullptr, " a b"), "a\u2581b");
  EXPECT_EQ(letters_of(nullptr, words, "a b"), "\u2581ab");
  EXPECT_EQ(letters_of(nullptr, words, " a b"), "ab");
}

}  // namespace
}  // namespace weft
