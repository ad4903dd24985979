// What keys of GGUF files and tokenizers beside models must not say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/exchange/gguf_files.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/exchange/gguf/family_parts.h"
#include "weft/exchange/gguf/vocabulary.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
namespace gguf = weft::exchange::gguf;
using Json = nlohmann::json;

namespace {

using Pairs = std::vector<std::pair<std::string, gguf::Value>>;

/// What is said of keys of such an architecture, beside those that every model has.
std::string settings_refused(const std::string& architecture, const Pairs& more) {
  gguf::Values values;
  for (const auto& [name, value] : more) values.add(architecture + "." + name, value);
  for (const char* name :
       {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count"})
    values.add(architecture + "." + name, gguf::whole(4));
  values.add(architecture + ".attention.layer_norm_rms_epsilon", gguf::real(1e-6));
  const std::vector<std::int64_t> words{4, 9};
  const gguf::Contents contents{.who = "FILE", .values = &values, .sizes = [&](const std::string& name) {
                                  return name == "token_embd.weight" ? &words : nullptr;
                                }};
  return refused(
      [&] { (void)gguf::read_settings(gguf::architecture_named(architecture, "FILE"), contents); });
}

std::string vocabulary_refused(const Json& tokenizer) {
  const TemporaryDirectory folder;
  write_atomically(folder / "tokenizer.json", std::string_view(tokenizer.dump()));
  const std::string who = (folder / "tokenizer.json").string();
  const std::string said =
      refused([&] { (void)gguf::vocabulary_of(gguf::tokenizer_files(folder.path()), 9, {}); });
  return said.starts_with(who) ? said.substr(who.size()) : said;
}
Json pairs_with_bytes() {
  return {{"model",
           {{"type", "BPE"},
            {"byte_fallback", true},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"aa", 3}}},
            {"merges", {"a b", "a a"}}}}};
}

std::string tokenizer_refused(const Pairs& keys) {
  gguf::Values values;
  for (const auto& [name, value] : keys) values.add("tokenizer.ggml." + name, value);
  std::string why_not;
  const std::string said = refused([&] { why_not = gguf::tokenizer_of(values, "FILE").why_not; });
  return said.empty() ? why_not : said;
}
Pairs tokenizer_keys() {
  return {{"model", gguf::text_of("gpt2")},
          {"pre", gguf::text_of("gpt-2")},
          {"tokens", gguf::words_of({"a", "b"})},
          {"token_type", gguf::wholes_of({1, 1})},
          {"merges", gguf::words_of({})}};
}

}  // namespace

TEST(GgufRefused, keys_of_another_kind) {
  EXPECT_EQ(settings_refused("llama", {{"block_count", gguf::text_of("two")}}),
            "FILE: llama.block_count is two, expected a whole number");
  EXPECT_EQ(settings_refused("llama", {{"attention.layer_norm_rms_epsilon", gguf::whole(1)}}),
            "FILE: llama.attention.layer_norm_rms_epsilon is 1, expected an f32");
  EXPECT_EQ(settings_refused("llama", {{"rope.scaling.type", gguf::yes(true)}}),
            "FILE: llama.rope.scaling.type is a bool, expected a text");
  EXPECT_EQ(settings_refused("gemma2", {{"attention.sliding_window_pattern", gguf::words_of({"x"})}}),
            "FILE: gemma2.attention.sliding_window_pattern is a list, expected a list of whole numbers");
  EXPECT_EQ(settings_refused("llama", {{"attention.head_count", gguf::whole(0)}}),
            "FILE: llama.attention.head_count is 0, expected 1 or more");
}

TEST(GgufRefused, angles_that_weft_does_not_stretch_so) {
  EXPECT_EQ(settings_refused("llama", {{"rope.scaling.type", gguf::text_of("longrope")}}),
            "FILE: llama.rope.scaling.type is longrope, weft reads linear and yarn");
  const std::pair<std::string, gguf::Value> yarn{"rope.scaling.type", gguf::text_of("yarn")};
  EXPECT_EQ(settings_refused("llama", {yarn, {"rope.scaling.attn_factor", gguf::real(2)}}),
            "FILE: llama.rope.scaling.attn_factor is 2, weft can only compute 1");
  EXPECT_EQ(settings_refused("llama", {yarn, {"rope.scaling.yarn_ext_factor", gguf::real(0.5)}}),
            "FILE: llama.rope.scaling.yarn_ext_factor is 0.5, weft can only compute 1");
  EXPECT_EQ(settings_refused("llama", {yarn, {"rope.scaling.yarn_log_multiplier", gguf::real(0.1)}}),
            "FILE: llama.rope.scaling.yarn_log_multiplier is 0.1, weft can only compute 0");
}

TEST(GgufRefused, windows_and_widths_that_do_not_fit) {
  EXPECT_EQ(settings_refused("gemma2", {}),
            "FILE: gemma2.attention.sliding_window is missing, expected 1 or more");
  EXPECT_EQ(settings_refused("gemma2", {{"attention.sliding_window", gguf::whole(8)},
                                        {"attention.sliding_window_pattern", gguf::answers_of({1})}}),
            "FILE: gemma2.attention.sliding_window_pattern is a list, expected 4 answers");
  EXPECT_EQ(settings_refused("olmo2", {{"attention.sliding_window", gguf::whole(8)}}),
            "FILE: olmo2.attention.sliding_window is 8, weft can only compute 0");
  EXPECT_EQ(settings_refused("qwen3", {{"attention.key_length", gguf::whole(8)},
                                       {"attention.value_length", gguf::whole(4)}}),
            "FILE: qwen3.attention.value_length is 4, weft can only compute 8");
  EXPECT_EQ(refused([] {
              gguf::must_fill("qwen2", {{"num_attention_heads", 4}, {"head_dim", 8}, {"hidden_size", 16}});
            }),
            "llama.cpp's qwen2 has heads that fill the hidden size, and 4 heads of 8 channels do not fill "
            "16; Hugging Face's form "
            "holds the model");
}

TEST(GgufRefused, vocabularies_that_contradict_themselves) {
  Json one = pairs_with_bytes();
  one["model"]["merges"] = {"a b", "a a", "ab "};
  EXPECT_EQ(vocabulary_refused(one), ": merge 2 is \"ab \", expected two tokens");
  one["model"]["merges"] = {"a b", "a a", "a b"};
  EXPECT_EQ(vocabulary_refused(one),
            ": merges that make ab stand apart, which scores cannot say; put its tokenizer.model beside it");
  one = pairs_with_bytes();
  one["model"]["vocab"]["c"] = -1;
  EXPECT_EQ(vocabulary_refused(one), ": c has the id -1, expected a whole number");
  one = pairs_with_bytes();
  one["added_tokens"] = {{{"id", 5}, {"content", ""}}};
  EXPECT_EQ(vocabulary_refused(one), ": an added token has the id 5 and 0 bytes");
  one = pairs_with_bytes();
  one["model"].erase("byte_fallback");
  one["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::array()}};
  EXPECT_EQ(vocabulary_refused(one),
            ": splits texts by no step, for which llama.cpp has no name that weft knows");
  one = pairs_with_bytes();
  one["model"]["merges"] = "none";
  EXPECT_THAT(vocabulary_refused(one), HasSubstr(": merge 0 is \"none\", expected two tokens"));
  one["model"]["byte_fallback"] = "yes";
  EXPECT_THAT(vocabulary_refused(one), HasSubstr(": its tokenizer is not as one should be: "));
  EXPECT_EQ(vocabulary_refused(Json::array()), ": is no JSON object");
}

TEST(GgufRefused, pieces_of_no_kind) {
  gguf::Vocabulary out;
  EXPECT_EQ(refused([&] { gguf::read_pieces("", "FILE", out); }), "FILE: holds no piece");
  EXPECT_EQ(refused([&] {
              gguf::read_pieces(
                  "\x0a\x05\x0a\x01"
                  "a\x18\x09",
                  "FILE", out);
            }),
            "FILE: piece 0 is of kind 9, expected 1 to 6");
}

TEST(GgufRefused, a_directory_without_a_tokenizer) {
  const TemporaryDirectory folder;
  EXPECT_EQ(refused([&] { (void)gguf::vocabulary_of(gguf::tokenizer_files(folder.path()), 9, {}); }),
            folder.path().string() +
                ": holds neither tokenizer.json nor tokenizer.model, nor vocab.json with merges.txt, of "
                "which a GGUF "
                "file's tokenizer is made");
}

TEST(GgufRefused, tokenizers_in_files_that_contradict_themselves) {
  EXPECT_EQ(tokenizer_refused(tokenizer_keys()), "");
  Pairs keys = tokenizer_keys();
  keys[1].second = gguf::text_of("viking");
  EXPECT_EQ(tokenizer_refused(keys),
            "FILE: its tokenizer splits texts as llama.cpp's \"viking\", which weft does not know: give that "
            "of the "
            "original");
  keys = tokenizer_keys();
  keys[3].second = gguf::wholes_of({1});
  EXPECT_EQ(tokenizer_refused(keys), "FILE: has 2 tokens and 1 kinds of them");
  keys = tokenizer_keys();
  keys[4].second = gguf::words_of({"ab"});
  EXPECT_EQ(tokenizer_refused(keys), "FILE: a merge of its tokenizer is \"ab\", expected two tokens");
  keys = tokenizer_keys();
  keys.emplace_back("eos_token_id", gguf::whole(2));
  EXPECT_EQ(tokenizer_refused(keys), "FILE: tokenizer.ggml.eos_token_id is 2, expected an id below 2");
  keys = tokenizer_keys();
  keys[2].second = gguf::wholes_of({1});
  EXPECT_EQ(tokenizer_refused(keys), "FILE: tokenizer.ggml.tokens is a list, expected a list of texts");
  keys = tokenizer_keys();
  keys[1].second = gguf::whole(1);
  EXPECT_EQ(tokenizer_refused(keys), "FILE: tokenizer.ggml.pre is a u32, expected a text");
}
