// Models in GGUF files: gguf-py's read, ours the same, and what llama.cpp or weft has no word for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "tests/exchange/gguf_files.h"
#include "weft/comm/solo.h"
#include "weft/exchange/gguf/model.h"
#include "weft/exchange/gguf/write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

ReadWeight reading(const TheirWeights& weights) {
  return [&weights](const Recipe& recipe) {
    std::vector<float> out(std::size_t(recipe.shape.elements()));
    weights.read(weights.at(recipe.name), 0, out);
    return out;
  };
}

/// Of a model in tests/golden/exchange.
Written write_golden(const std::string& name, const fs::path& to, const gguf::FileForm& form = {}) {
  const TheirModel theirs = read_theirs(hub_model(name));
  const auto weights = theirs.open();
  return gguf::write_model(to, theirs.model, reading(*weights), form);
}

std::vector<float> logits_of(const TheirModel& theirs, const std::vector<std::int32_t>& prompt) {
  SoloCommunicator solo;
  ModelConfig config = theirs.model;
  config.sequence = config.max_positions;
  ReadModel model(config, solo);
  load_theirs(*theirs.open(), model.named(), solo);
  return model.logits(prompt);
}

std::string not_written(const std::string& name) {
  const TemporaryDirectory folder;
  const std::string said = weft::refused([&] { (void)write_golden(name, folder / "m.gguf"); });
  EXPECT_TRUE(fs::is_empty(folder.path())) << name;
  return said;
}

/// The same of other settings.
std::string not_written(const std::string& name, const nlohmann::json& changes) {
  const TemporaryDirectory folder;
  const ReadWeight read = [](const Recipe& recipe) {
    return std::vector<float>(std::size_t(recipe.shape.elements()));
  };
  return weft::refused(
      [&] { (void)gguf::write_model(folder / "m.gguf", model_with(name, changes), read, {}); });
}

/// What is said of a file whose bytes `was` became `is`, both as long.
std::string refused_with(const std::string& golden, const std::string& was, const std::string& is) {
  const TemporaryDirectory folder;
  std::string bytes = read_file(gguf_golden(golden));
  const auto at = bytes.find(was);
  EXPECT_NE(at, std::string::npos) << was;
  bytes.replace(at, was.size(), is);
  const fs::path file = folder / "m.gguf";
  write_atomically(file, std::string_view(bytes));
  std::string said = weft::refused([&] { (void)read_theirs(file).open(); });
  const std::string who = file.string();
  EXPECT_TRUE(said.starts_with(who)) << said;
  return said.substr(std::min(said.size(), who.size()));
}

constexpr const char* written_models[] = {"llama2", "llama3", "mixtral", "qwen2",   "qwen3",
                                          "gpt2",   "gemma",  "olmo2",   "granite", "glm4"};

}  // namespace

TEST(GgufModel, gives_the_logits_of_the_model_that_gguf_py_wrote) {
  for (const auto& [file, model, within] :
       {std::tuple{"llama3.gguf", "llama3", 1e-5}, std::tuple{"gpt2_q8_0.gguf", "gpt2", 2e-2}}) {
    const Expected expected = expected_of(hub_model(model));
    const TheirModel found = read_theirs(gguf_golden(file));
    EXPECT_EQ(found.program, Program::llama_cpp);
    EXPECT_LT(difference(logits_of(found, expected.prompt), expected.logits), within) << file;
  }
}

TEST(GgufModel, tensors_are_written_as_gguf_py_does) {
  const TemporaryDirectory folder;
  for (const auto& [golden, model, type] : {std::tuple{"llama3.gguf", "llama3", gguf::NumberType::f32},
                                            std::tuple{"gpt2_q8_0.gguf", "gpt2", gguf::NumberType::q8_0}}) {
    const fs::path file = folder / golden;
    const Written said = write_golden(model, file, {.type = type});
    const gguf::ModelFile found(file), expected(gguf_golden(golden));
    EXPECT_EQ(said.tensors, std::ssize(expected.header().tensors));
    for (const gguf::StoredTensor& one : expected.header().tensors) {
      const gguf::StoredTensor* ours = found.find(one.name);
      ASSERT_NE(ours, nullptr) << one.name;
      EXPECT_EQ(ours->type, one.type) << one.name;
      EXPECT_EQ(ours->sizes, one.sizes) << one.name;
      if (one.name == gguf::frequencies_name) continue;
      EXPECT_TRUE(std::ranges::equal(found.bytes(*ours), expected.bytes(one))) << one.name;
    }
  }
}

TEST(GgufModel, is_read_again_with_every_number) {
  const TemporaryDirectory folder;
  for (const char* name : written_models) {
    SCOPED_TRACE(name);
    const fs::path file = folder / (std::string(name) + ".gguf");
    write_golden(name, file);
    const TheirModel theirs = read_theirs(hub_model(name)), again = read_theirs(file);
    EXPECT_FALSE(disagreement(theirs.model, again.model));
    const auto before = theirs.open(), after = again.open();
    for (const Recipe& recipe : before->all()) {
      const auto a = reading(*before)(recipe), b = reading(*after)(recipe);
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 1e-7) << recipe.name;  // gains around zero are stored around one
    }
  }
}

TEST(GgufModel, refuses_before_a_byte_what_llama_cpp_has_no_word_for) {
  EXPECT_EQ(not_written("qwen2_window"),
            "llama.cpp's qwen2 has no word for window 4 of the model, and would compute 0; Hugging Face's "
            "form holds it");
  EXPECT_EQ(not_written("mistral"),
            "llama.cpp's llama has no word for window 5 of the model, and would compute 0; Hugging Face's "
            "form holds it");
  EXPECT_EQ(not_written("llama_stretched"),
            "llama.cpp's llama has no word for rotary.mscale 0 of the model, and would compute 1; Hugging "
            "Face's form "
            "holds it");
  EXPECT_EQ(not_written("qwen3_biased"),
            "llama.cpp's qwen3 has no place for model.layers.0.self_attn.q_proj.bias, which the model has; "
            "Hugging Face's form "
            "holds it");
  const nlohmann::json tied{{"tie_word_embeddings", true}, {"mlp_only_layers", nlohmann::json::array()}};
  for (const auto& [name, theirs] : {std::pair{"olmo2", "olmo2"}, std::pair{"qwen2_moe", "qwen2moe"}})
    EXPECT_EQ(not_written(name, tied),
              text("llama.cpp's ", theirs,
                   " has an output of its own, and the model's is its embedding; Hugging Face's form holds "
                   "the model"));
  EXPECT_EQ(
      not_written("gemma", {{"tie_word_embeddings", false}}),
      "llama.cpp's gemma has no place for lm_head.weight, which the model has; Hugging Face's form holds "
      "it");
  EXPECT_THAT(not_written("bloom"),
              HasSubstr("and this model is a bloom; Hugging Face's form holds it, and llama.cpp's own "
                        "converter may know it"));
  EXPECT_THAT(not_written("bert"), HasSubstr("weft writes GGUF files of llama, mistral, mixtral, qwen2, "));
}

TEST(GgufModel, what_does_not_end_leaves_nothing_under_the_name) {
  const TemporaryDirectory folder;
  const TheirModel theirs = read_theirs(hub_model("llama3"));
  const auto weights = theirs.open();
  int left = 5;
  const ReadWeight breaks = [&](const Recipe& recipe) {
    if (left-- == 0) fail(Kind::data, "the disk is gone");
    return reading(*weights)(recipe);
  };
  const fs::path file = folder / "m.gguf";
  EXPECT_EQ(weft::refused([&] { (void)gguf::write_model(file, theirs.model, breaks, {}); }),
            "the disk is gone");
  EXPECT_FALSE(fs::exists(file));
}

TEST(GgufModel, refuses_keys_and_tensors_of_another_model) {
  EXPECT_THAT(refused_with("llama3.gguf", "general.architecture", "general.architectur3"),
              ": does not say its general.architecture");
  EXPECT_THAT(refused_with("llama3.gguf", counted("llama"), counted("lamma")),
              HasSubstr(": its general.architecture is lamma, and weft reads llama, qwen2, qwen3, gpt2, "));
  EXPECT_EQ(refused_with("llama3.gguf", "llama.block_count", "llama.block_conut"),
            ": llama.block_count is missing, expected a whole number");
  EXPECT_EQ(refused_with("llama3.gguf", u32_key("llama.block_count", 2), u32_key("llama.block_count", 3)),
            ": lacks blk.2.attn_norm.weight, which the model that its keys describe has");
  EXPECT_EQ(refused_with("llama3.gguf", u32_key("llama.block_count", 2), u32_key("llama.block_count", 1)),
            ": holds blk.1.attn_norm.weight, which is no part of the model that its keys describe");
  EXPECT_EQ(refused_with("llama3.gguf", u32_key("llama.feed_forward_length", 24),
                         u32_key("llama.feed_forward_length", 16)),
            ": blk.0.ffn_gate.weight is {16, 24}, its keys ask for {16, 16}");
  EXPECT_EQ(refused_with("llama3.gguf", u32_key("llama.rope.dimension_count", 4),
                         u32_key("llama.rope.dimension_count", 2)),
            ": llama.rope.dimension_count is 2, weft can only compute 4");
  EXPECT_EQ(refused_with("llama3.gguf", "token_embd.weight", "token_emdb.weight"),
            ": token_embd.weight is missing, expected a matrix");
  EXPECT_EQ(refused_with("gpt2_q8_0.gguf", u32_key("gpt2.block_count", 2),
                         counted("gpt2.block_count") + raw(std::uint32_t{6}) + raw(2.0F)),
            ": gpt2.block_count is 2, expected a whole number");
}

TEST(GgufModel, refuses_angles_that_are_stretched_as_no_llama_3) {
  const std::string key = "llama.rope.scaling.llama3.factor";
  EXPECT_THAT(refused_with("llama3.gguf", counted(key) + raw(std::uint32_t{6}) + raw(4.0F),
                           counted(key) + raw(std::uint32_t{6}) + raw(2.0F)),
              HasSubstr(", and weft knows llama3's factors, by which it is "));
}

TEST(GgufModel, refuses_one_file_of_several) {
  const TemporaryDirectory folder;
  const fs::path file = folder / "m-00001-of-00002.gguf";
  const MadeFile made{.keys = 1,
                      .said = counted("split.count") + raw(std::uint32_t{2}) + raw(std::uint16_t{2})};
  write_atomically(file, std::string_view(made.bytes()));
  EXPECT_EQ(weft::refused([&] { (void)read_theirs(file); }),
            file.string() + ": is one of 2 files, and weft reads single ones: llama-gguf-split merges them");
}
