#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dry_run.h"
#include "weft/cli/train_command.h"
#include "weft/exchange/hub_config.h"
#include "weft/model/count.h"

using namespace weft;
using namespace weft::cli;

namespace {

// The parameters of the models that the examples are named after, as their makers publish them.
const std::map<std::string, std::int64_t> published = {
    {"gpt2_124m", 124'439'808},
    {"gpt2_1.5b", 1'557'611'200},
    {"gpt3_175b", 174'604'259'328},
    {"llama2_7b", 6'738'415'616},
    {"llama2_70b", 68'976'648'192},
    {"llama3_8b", 8'030'261'248},
    {"llama3.1_8b", 8'030'261'248},
    {"llama3_70b", 70'553'706'496},
    {"mistral_7b", 7'241'732'096},
    {"qwen2_0.5b", 494'032'768},
    {"qwen2_7b", 7'615'616'512},
    {"qwen3_0.6b", 596'049'920},
    {"qwen3_8b", 8'190'735'360},
    {"phi4", 14'659'507'200},
    {"smollm3_3b", 3'075'098'624},
    {"olmo3_7b", 7'298'011'136},
    {"gemma3_1b", 999'885'952},
    {"gemma2_2b", 2'614'341'888},
    {"granite3.1_8b", 8'170'848'256},
    {"pythia_1.4b", 1'414'647'808},
    {"bloom_7b1", 7'069'016'064},
    {"opt_6.7b", 6'658'465'792},
    {"command_r", 34'980'831'232},
    {"command_r_plus", 103'810'674'688},
    {"stablelm_2_12b", 12'143'185'920},
    {"olmo_7b", 6'888'095'744},
    {"granite3.0_3b_a800m", 3'298'793'472},
    {"hunyuan_a13b", 80'393'183'232},
    {"ministral3_8b", 8'489'553'920},
    // 1,026,408,209,408 and the biases that choose experts.
    {"kimi_k2", 1'026'408'232'448},
    {"minitron_8b", 8'271'699'968},
    {"minimax_m2", 228'689'764'864},
    {"llama4_scout", 107'769'861'120},
    // With the biases that choose experts.
    {"glm4.5_air", 106'852'251'264},
    {"gemma_2b", 2'506'172'416},
    {"gemma_7b", 8'537'680'896},
    {"bert_base", 110'106'428},
    {"bert_large", 336'226'108},
    {"t5_1.1_small", 76'961'152},
    {"t5_1.1_base", 247'577'856},
    {"t5_1.1_large", 783'150'080},
    {"t5_1.1_xl", 2'849'757'184},
    {"t5_1.1_xxl", 11'135'332'352},
    {"t5_small", 60'506'624},
    {"t5_base", 222'903'552},
    {"t5_large", 737'668'096},
    {"t5_3b", 2'851'598'336},
    {"t5_11b", 11'307'321'344},
    {"mixtral_8x7b", 46'702'792'704},
    {"qwen1.5_moe_a2.7b", 14'315'784'192},
    {"qwen3_30b_a3b", 30'532'122'624},
    {"qwen3_next_80b_a3b", 79'674'391'296},
    {"nemotron_h_8b", 8'100'852'736},
    // 31,577,937,344 and the biases that choose experts.
    {"nemotron3_nano_30b_a3b", 31'577'940'288},
    {"olmoe_1b_7b", 6'919'161'856},
    {"gpt_oss_20b", 20'914'757'184},
    {"gpt_oss_120b", 116'829'156'672},
    {"deepseek_v2_lite", 15'706'484'224},
    // 671,026,419,200 with the biases that choose experts, and what guesses a further token.
    {"deepseek_v3", 682'636'487'424},
};

}  // namespace

namespace {

/// T5's tokenizers have 32,100 words for 32,128 rows: what its makers count and no token ever means.
std::int64_t rows_without_a_word(const std::string& name, const ModelConfig& model) {
  return name.starts_with("t5") ? 28 * model.hidden * (model.tied_output ? 1 : 2) : 0;
}

}  // namespace

TEST(Examples, are_all_understood_and_have_the_parameters_of_the_model_they_name) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string file = entry.path().string(), name = entry.path().stem().string();
    const std::vector<std::string_view> words = {"--config", file, "--mock-data"};
    const auto command = read_command(words);
    for (const char* family : {"bert", "t5"})
      if (name.starts_with(family)) command->config.model.kind = family;
    const ParallelConfig& p = command->config.parallel;
    ASSERT_NO_THROW(complete(*command, 8 * p.tp * p.cp * p.pp)) << name;
    EXPECT_TRUE(command->notices.empty()) << name << ": " << command->notices[0];
    ASSERT_TRUE(published.contains(name)) << name;
    const ModelConfig& model = command->config.model;
    EXPECT_EQ(count_parameters(model).total() + rows_without_a_word(name, model), published.at(name)) << name;
    if (name.starts_with("t5")) {
      EXPECT_EQ(model.padded_vocabulary, 32128) << name;
    }
    ++seen;
  }
  EXPECT_EQ(seen, published.size());
}

// Of the same name among the settings that models are published with.
TEST(Examples, are_the_models_that_their_makers_publish) {
  std::size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/tests/golden/exchange/published")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || !published.contains(name)) continue;
    const std::string file = std::string(WEFT_SOURCE_DIR "/examples/") + name + ".yaml";
    const std::vector<std::string_view> words = {"--config", file, "--mock-data"};
    const auto command = read_command(words);
    const ParallelConfig& p = command->config.parallel;
    complete(*command, 8 * p.tp * p.cp * p.pp);
    const exchange::HubConfig hub =
        exchange::hub_config_from_json(read_file(entry.path()), entry.path().string());
    EXPECT_NO_THROW(exchange::must_agree(command->config.model, hub.model, name));
    ++seen;
  }
  EXPECT_EQ(seen, 20U);
}

namespace {

/// A tokenizer.json with as many tokens as T5's own: pieces, then sentinels from the last one down.
void write_tokenizer_of_a_t5(const std::filesystem::path& file) {
  using Json = nlohmann::json;
  Json pieces = Json::array({{"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}}), added = Json::array();
  for (int id = 3; id < 32000; ++id) pieces.push_back({"piece" + std::to_string(id), -1.0});
  for (int k = 99; k >= 0; --k) pieces.push_back({"<extra_id_" + std::to_string(k) + ">", 0});
  for (const int id : {0, 1, 2})
    added.push_back({{"id", id}, {"content", pieces[std::size_t(id)][0]}, {"special", true}});
  for (int id = 32000; id < 32100; ++id)
    added.push_back({{"id", id}, {"content", pieces[std::size_t(id)][0]}, {"special", true}});
  const Json model{{"type", "Unigram"}, {"unk_id", 2}, {"vocab", pieces}};
  std::ofstream(file) << Json{{"added_tokens", added}, {"model", model}}.dump();
}

}  // namespace

// The words of the command in the first lines of each.
TEST(Examples, of_a_t5_say_the_size_of_its_own_tokenizer) {
  const support::TemporaryDirectory folder;
  write_tokenizer_of_a_t5(folder / "tokenizer.json");
  const std::string own = folder.path().string();
  for (const char* name : {"t5_small", "t5_1.1_small"}) {
    const std::string file = std::string(WEFT_SOURCE_DIR "/examples/") + name + ".yaml";
    const std::vector<std::string_view> words = {
        "--config",          file, "--mock-data", "--tokenizer-type", "HuggingFaceTokenizer",
        "--tokenizer-model", own};
    const auto command = read_command(words);
    command->config.model.kind = "t5";
    command->dry_run = true;
    finish(*command, {.world = 8});
    EXPECT_TRUE(command->notices.empty()) << name << ": " << command->notices[0];
    EXPECT_EQ(command->config.model.vocabulary, 32100) << name;
    EXPECT_EQ(command->config.model.padded_vocabulary, 32128) << name;
  }
}
