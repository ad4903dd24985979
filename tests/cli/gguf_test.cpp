// weft checkpoint convert to and from GGUF files: what it makes of models and tokenizers, and what it says.
// llama.cpp itself reads such files in tests/oracle/gguf.py.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/going_on.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/exchange/gguf/model.h"
#include "weft/exchange/gguf/vocabulary.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
namespace gguf = weft::exchange::gguf;

namespace {

namespace fs = std::filesystem;

std::string model(const std::string& name) { return exchange_golden(name).string(); }

void put(const fs::path& file, const Json& json) { write_atomically(file, std::string_view(json.dump())); }

/// A byte-level tokenizer of the alphabet and a few pairs, as tokenizer.json has it.
Json byte_level() {
  Json vocab;
  int id = 0;
  for (const char* token : {"a", "b", "c", "Ġ", "ab", "Ġa", "abc"}) vocab[token] = id++;
  return {{"added_tokens",
           {{{"id", 7}, {"content", "<|begin|>"}, {"special", true}},
            {{"id", 8}, {"content", "<tool>"}, {"special", false}},
            {{"id", 9}, {"content", "<|look|>"}, {"special", false}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<|begin|>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair", Json::array()},
            {"special_tokens", Json::object()}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b", "Ġ a", "ab c"}}}}};
}

/// A copy of a golden model with a tokenizer beside it.
fs::path with_tokenizer(const TemporaryDirectory& folder, const Json& tokenizer) {
  const fs::path at = folder / "theirs";
  fs::copy(model("llama2"), at);
  put(at / "tokenizer.json", tokenizer);
  put(at / "tokenizer_config.json", {{"bos_token", "<|begin|>"},
                                     {"eos_token", {{"content", "<|look|>"}}},
                                     {"chat_template", "{{ messages }}"}});
  return at;
}

std::string refused_tokenizer(const Json& tokenizer) {
  const TemporaryDirectory folder;
  const fs::path from = with_tokenizer(folder, tokenizer), to = folder / "m.gguf";
  const Told told = convert({from.string(), to.string()});
  EXPECT_EQ(told.status, 2);
  EXPECT_FALSE(fs::exists(to));
  const std::string who = (from / "tokenizer.json").string();
  EXPECT_TRUE(told.err.starts_with(who)) << told.err;
  return told.err.substr(std::min(who.size(), told.err.size()));
}

/// A SentencePiece model, which is a protobuf message: <unk>, <s>, </s> and one piece; of that kind of
/// training.
std::string pieces_joined_as(char kind) {
  const auto message = [](char field, const std::string& content) {
    return std::string{char(field << 3 | 2), char(content.size())} + content;
  };
  const auto piece = [&](const std::string& token, float score, char type) {
    std::string bits(4, '\0');
    std::memcpy(bits.data(), &score, 4);
    return message(1, message(1, token) + std::string{2 << 3 | 5} + bits + std::string{3 << 3, type});
  };
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581a", -0.5F, 1) +
         message(2, std::string{3 << 3, kind});
}

template <class T>
T held(const gguf::ModelFile& file, std::string_view key) {
  const gguf::Value* value = file.header().values.find(key);
  return value == nullptr || value->as<T>() == nullptr ? T() : *value->as<T>();
}

}  // namespace

TEST(Gguf, a_name_that_ends_so_is_enough) {
  const TemporaryDirectory folder;
  const Told made = convert({"--json", model("qwen3"), (folder / "m.gguf").string()});
  EXPECT_EQ(made.status, 0) << made.err;
  const Json said = Json::parse(made.out);
  EXPECT_EQ(said["largest_difference"], 0);
  EXPECT_EQ(said["tensors"], 25);
  EXPECT_EQ(said["dtype"], "f32");
  EXPECT_THAT(made.err,
              HasSubstr("no tokenizer is known for the model: llama.cpp will read ids, and no texts"));
  EXPECT_EQ(held<std::string>(gguf::ModelFile(folder / "m.gguf"), "tokenizer.ggml.model"), "none");
}

TEST(Gguf, what_a_stopped_conversion_left_is_named) {
  const TemporaryDirectory folder;
  const std::string file = (folder / "m.gguf").string(), left = file + ".partial-0123abcd";
  for (const std::string& name : {left, (folder / "other.gguf.partial-0123abcd").string(), file + ".notes"})
    write_atomically(name, std::string(2048, 'x'));
  EXPECT_EQ(convert({model("gpt2"), file}).err,
            "no tokenizer is known for the model: llama.cpp will read ids, and no texts; --tokenizer names "
            "one\n" +
                left + ": 2.0 KiB of a conversion that was stopped, if none runs now; it is of no use\n");
  const std::string hub = (folder / "hub").string();
  fs::create_directory(hub);
  write_atomically(hub + "/model.safetensors.partial-0123abcd", std::string(2048, 'x'));
  EXPECT_THAT(convert({"--to", "hf", file, hub}).err,
              HasSubstr(hub + "/model.safetensors.partial-0123abcd: 2.0 KiB of a conversion"));
}

TEST(Gguf, types_are_those_that_were_asked_for) {
  const TemporaryDirectory folder;
  for (const auto& [word, number] :
       {std::pair{"f32", 0}, std::pair{"f16", 1}, std::pair{"q8_0", 7}, std::pair{"bf16", 32}}) {
    const fs::path file = folder / (std::string(word) + ".gguf");
    const Told made = convert({"--to", "gguf", "--dtype", word, model("gpt2"), file.string()});
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr(std::string(" of ") + word + " in 1 file"));
    EXPECT_EQ(held<std::int64_t>(gguf::ModelFile(file), "general.file_type"), number);
  }
}

TEST(Gguf, becomes_a_run_and_a_model_of_hugging_faces_again) {
  const TemporaryDirectory folder;
  const std::string file = (folder / "m.gguf").string(), run = (folder / "run").string(),
                    hub = (folder / "hub").string();
  convert({model("mixtral"), file});
  EXPECT_THAT(convert({file, run}).out,
              HasSubstr("the largest difference of a logit is 0, of logits up to 4.25"));
  EXPECT_THAT(convert({"--to", "hf", file, hub}).out,
              HasSubstr("the largest difference of a logit is 0, of logits up to 4.25"));
  EXPECT_EQ(find_model(hub).theirs->hub->type, "mixtral");
  const Told again = convert({run, (folder / "again.gguf").string()});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(gguf::ModelFile(folder / "again.gguf").header().tensors.size(),
            gguf::ModelFile(file).header().tensors.size());
}

TEST(Gguf, says_all_of_a_byte_level_tokenizer) {
  const TemporaryDirectory folder;
  const fs::path file = folder / "m.gguf";
  const Told made = convert({with_tokenizer(folder, byte_level()).string(), file.string()});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("tokenizer: gpt2, gpt-2\n"));
  const gguf::ModelFile found(file);
  const auto tokens = held<std::vector<std::string>>(found, "tokenizer.ggml.tokens");
  const auto types = held<std::vector<std::int64_t>>(found, "tokenizer.ggml.token_type");
  ASSERT_EQ(tokens.size(), 37);
  EXPECT_EQ(tokens[5], "Ġa");
  EXPECT_EQ(tokens[36], "[PAD36]");
  EXPECT_THAT(std::vector(types.begin() + 6, types.begin() + 11), ElementsAre(1, 3, 4, 3, 5));
  EXPECT_THAT(held<std::vector<std::string>>(found, "tokenizer.ggml.merges"),
              ElementsAre("a b", "Ġ a", "ab c"));
  EXPECT_EQ(held<std::int64_t>(found, "tokenizer.ggml.bos_token_id"), 7);
  EXPECT_EQ(held<std::int64_t>(found, "tokenizer.ggml.eos_token_id"), 9);
  EXPECT_TRUE(held<bool>(found, "tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(held<std::string>(found, "tokenizer.chat_template"), "{{ messages }}");
}

// llama.cpp itself takes token 11 for the end and the beginning of texts where a file names none.
TEST(Gguf, names_the_end_of_a_text_that_only_the_tokenizer_knows) {
  const TemporaryDirectory folder;
  Json tokenizer = byte_level();
  tokenizer["post_processor"] = nullptr;
  tokenizer["added_tokens"][2]["content"] = "<|endoftext|>";
  const fs::path from = with_tokenizer(folder, tokenizer), to = folder / "m.gguf";
  for (const char* other : {"tokenizer_config.json", "generation_config.json"}) fs::remove(from / other);
  Json config = Json::parse(read_file(from / "config.json"));
  config.erase("eos_token_id");
  put(from / "config.json", config);
  EXPECT_EQ(convert({from.string(), to.string()}).status, 0);
  EXPECT_EQ(held<std::int64_t>(gguf::ModelFile(to), "tokenizer.ggml.eos_token_id"), 9);
  tokenizer["added_tokens"][2]["content"] = "<|look|>";
  put(from / "tokenizer.json", tokenizer);
  const Told none = convert({from.string(), (folder / "none.gguf").string()});
  EXPECT_THAT(none.err, HasSubstr("the tokenizer names no token that ends a text: llama.cpp will take token "
                                  "11 for one\n"));
}

TEST(Gguf, gives_the_tokenizer_back) {
  const TemporaryDirectory folder;
  const fs::path file = folder / "m.gguf", back = folder / "back";
  convert({with_tokenizer(folder, byte_level()).string(), file.string()});
  const Told made = convert({"--to", "hf", file.string(), back.string()});
  EXPECT_THAT(made.out, HasSubstr("tokenizer: tokenizer.json, tokenizer_config.json\n"));
  const Json found = Json::parse(read_file(back / "tokenizer.json")), original = byte_level();
  EXPECT_EQ(found["model"]["vocab"], original["model"]["vocab"]);
  EXPECT_EQ(found["model"]["merges"][2], Json::array({"ab", "c"}));
  EXPECT_EQ(found["added_tokens"].size(), 3);
  EXPECT_EQ(found["post_processor"]["single"], original["post_processor"]["single"]);
  const Json config = Json::parse(read_file(back / "tokenizer_config.json"));
  EXPECT_EQ(config["eos_token"], "<|look|>");
  EXPECT_EQ(config["chat_template"], "{{ messages }}");
}

TEST(Gguf, generates_text_by_the_tokenizer_inside) {
  const TemporaryDirectory folder;
  const std::string file = (folder / "m.gguf").string(), back = (folder / "back").string();
  convert({with_tokenizer(folder, byte_level()).string(), file});
  convert({"--to", "hf", file, back});
  const auto generated = [](const std::string& model) {
    return told(generate_verb(), {model, "--prompt", "ab", "--greedy", "--tokens", "3"});
  };
  const Told said = generated(file);
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(said.out.substr(0, 2), "ab");
  EXPECT_EQ(said.out, generated(back).out);
}

TEST(Gguf, takes_a_sentencepiece_model_and_says_that_it_cannot_be_given_back) {
  const TemporaryDirectory folder;
  const fs::path file = folder / "m.gguf", pieces = folder / "tokenizer.model";
  write_atomically(pieces, std::string_view(pieces_joined_as(2)));
  const Told made = convert({"--tokenizer", pieces.string(), model("llama2"), file.string()});
  EXPECT_EQ(made.status, 0) << made.err;
  const gguf::ModelFile found(file);
  EXPECT_EQ(held<std::string>(found, "tokenizer.ggml.model"), "llama");
  EXPECT_EQ(held<std::vector<std::string>>(found, "tokenizer.ggml.tokens")[3], "\u2581a");
  EXPECT_EQ(held<std::vector<double>>(found, "tokenizer.ggml.scores")[3], -0.5);
  const auto types = held<std::vector<std::int64_t>>(found, "tokenizer.ggml.token_type");
  EXPECT_THAT(std::vector(types.begin(), types.begin() + 5), ElementsAre(2, 3, 3, 1, 5));
  EXPECT_EQ(held<std::int64_t>(found, "tokenizer.ggml.eos_token_id"), 2);
  const Told back = convert({"--to", "hf", file.string(), (folder / "back").string()});
  EXPECT_EQ(back.status, 0);
  EXPECT_EQ(
      back.err,
      file.string() +
          ": its tokenizer is llama.cpp's \"llama\", of which weft makes no tokenizer.json: give that of "
          "the original\n");
}

TEST(Gguf, refuses_pieces_that_are_not_joined_by_scores) {
  const TemporaryDirectory folder;
  const fs::path pieces = folder / "tokenizer.model";
  write_atomically(pieces, std::string_view(pieces_joined_as(1)));
  EXPECT_EQ(convert({"--tokenizer", pieces.string(), model("llama2"), (folder / "m.gguf").string()}).err,
            pieces.string() +
                ": is no model of pairs that are joined (its kind is 1, expected 2, which is BPE): llama.cpp "
                "splits other "
                "texts for it; give another tokenizer\n");
  write_atomically(pieces, std::string_view(pieces_joined_as(2).substr(0, 20)));
  EXPECT_EQ(convert({"--tokenizer", pieces.string(), model("llama2"), (folder / "m.gguf").string()}).err,
            pieces.string() + ": is no SentencePiece model, or breaks off, at byte 18 of 20\n");
}

TEST(Gguf, refuses_tokenizers_that_llama_cpp_has_not) {
  Json changed = byte_level();
  changed["model"]["type"] = "Unigram";
  EXPECT_EQ(refused_tokenizer(changed),
            ": is a tokenizer of the kind Unigram, and weft writes BPE and SentencePiece models of pairs to "
            "GGUF files; give another tokenizer\n");
  changed = byte_level();
  changed["model"]["end_of_word_suffix"] = "</w>";
  EXPECT_EQ(refused_tokenizer(changed),
            ": its end_of_word_suffix is \"</w>\", which llama.cpp's BPE has not\n");
  changed = byte_level();
  changed["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_EQ(refused_tokenizer(changed), ": makes texts plain by Lowercase, which llama.cpp's BPE does not\n");
  changed = byte_level();
  changed["pre_tokenizer"] = {{"type", "Whitespace"}};
  EXPECT_THAT(
      refused_tokenizer(changed),
      HasSubstr(
          R"(: splits texts by {"type":"Whitespace"}, for which llama.cpp has no name that weft knows; give another)"));
  changed = byte_level();
  changed["model"]["ignore_merges"] = true;
  EXPECT_THAT(refused_tokenizer(changed),
              HasSubstr(": splits texts by words and ignores merges, for which llama.cpp has no name"));
  changed = byte_level();
  changed["model"]["merges"] = {"a b c"};
  EXPECT_EQ(refused_tokenizer(changed), ": merge 0 is \"a b c\", expected two tokens\n");
  changed = byte_level();
  changed["model"]["vocab"]["z"] = 99;
  EXPECT_EQ(refused_tokenizer(changed), ": has ids up to 99, and the model has 37 words\n");
}

TEST(Gguf, refuses_what_is_there_or_makes_no_sense) {
  const TemporaryDirectory folder;
  const std::string file = (folder / "m.gguf").string(), to = (folder / "to").string();
  const auto refused_by = [](const std::vector<std::string>& words) { return convert(words).err; };
  EXPECT_EQ(refused_by({"--dtype", "q8_0", model("llama2"), to}),
            "checkpoint convert: --dtype q8_0 is of GGUF files, and " + to + " is to be weft's\n");
  convert({model("llama2"), file});
  EXPECT_EQ(refused_by({model("llama2"), file}),
            file + ": is there already; name a file that is not, which ends in .gguf\n");
  EXPECT_EQ(refused_by({"--from", "hf", file, to}),
            "checkpoint convert: " + file + " is a GGUF file, and --from hf is asked for\n");
  EXPECT_EQ(refused_by({file, (folder / "n.gguf").string()}),
            "checkpoint convert: " + file + " is a GGUF file already\n");
}
