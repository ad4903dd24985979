// Families are found by name, and what one lists of its parameters is what it builds.
#include "weft/model/kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/support/refused.h"
#include "tests/support/source_dir.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Shapes and beginnings by name.
using Listed = std::map<std::string, std::string>;

std::string said(const Shape& shape, const Init& init) {
  return text(shape, " how ", int(init.how), " value ", init.value, " spread ", init.spread);
}

Listed listed(const ModelConfig& config) {
  Listed out;
  const ParameterList list = kind_of(config).parameters(config);
  for (const WholeParameter& p : list.all()) out[p.name] = said(p.shape, p.init);
  return out;
}

Listed built(const ModelConfig& config) {
  const auto device = open_device("meta");
  TinyModel model(config, *device);
  Listed out;
  model.stage().each_parameter(
      [&](Parameter& p) { out[p.name] = said(p.pieces.front().where.global, p.init); });
  return out;
}

}  // namespace

TEST(ModelKinds, are_found_by_name) {
  EXPECT_EQ(kind_named("gpt").name, "gpt");
  EXPECT_EQ(kind_of({}).name, "gpt");
  EXPECT_FALSE(find_kind("mamba"));
  std::string all;
  for (const ModelKind& kind : model_kinds()) all += (all.empty() ? "" : ", ") + std::string(kind.name);
  EXPECT_THAT(all, ::testing::StartsWith("gpt, bert"));
  EXPECT_EQ(refused([] { (void)kind_named("mamba"); }), "model: no family is called mamba, weft has " + all);
}

TEST(ModelKinds, let_matrices_decay_and_no_vector) {
  const auto device = open_device("meta");
  for (const ModelConfig& config : {tiny_gpt2(), tiny_llama(), tiny_bert(), tiny_t5()}) {
    TinyModel model(config, *device);
    model.stage().each_parameter(
        [](const Parameter& p) { EXPECT_EQ(p.decays, p.shape.rank() > 1) << p.name; });
  }
}

TEST(ModelKinds, build_the_parameters_they_list) {
  ModelConfig normed = tiny_llama();
  normed.qk_norm = normed.norm_centered_gain = true;
  ModelConfig uniform = tiny_gpt2();
  uniform.init = {.method = InitMethod::xavier_uniform, .embedding_std = 0.5, .scale_output_layers = false};
  ModelConfig one_loss = tiny_bert();
  one_loss.sentence_order = one_loss.tied_output = false;
  ModelConfig other_t5 = tiny_t5();
  other_t5.decoder_layers = 3;
  other_t5.tied_output = false;
  other_t5.positions = Positions::learned;
  for (const ModelConfig& config :
       {tiny_gpt2(), tiny_llama(), normed, uniform, tiny_bert(), one_loss, tiny_t5(), other_t5,
        tiny_mixture(), tiny_latent(), tiny_ahead(tiny_llama())})
    EXPECT_EQ(built(config), listed(config));
}

// docs/adding.md: a family is a folder and a line. What data and vocabularies of encoders are called is their
// own word.
TEST(ModelKinds, are_named_in_their_folders_alone) {
  const std::filesystem::path root = WEFT_SOURCE_DIR "/weft";
  const std::set<std::string> words_of_others{"model/config.h", "text/open.cpp", "data/masked_dataset.cpp",
                                              "data/masked_open.cpp", "exchange/megatron/family.cpp"};
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = std::filesystem::relative(entry.path(), root).string();
    if (!entry.is_regular_file() || words_of_others.contains(path)) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      for (const ModelKind& kind : model_kinds()) {
        const auto named = line.find(text('"', kind.name, '"'));
        if (named == std::string::npos || line.find("//") < named) continue;
        EXPECT_THAT(path, ::testing::StartsWith(text("model/", kind.name, "/"))) << line;
        ++seen;
      }
  }
  EXPECT_GE(seen, std::ssize(model_kinds()));
}

TEST(ModelKinds, know_no_parameter_twice_or_of_another_model) {
  ParameterList list = kind_named("gpt").parameters(tiny_gpt2());
  EXPECT_FALSE(list.has("output.words"));
  EXPECT_EQ(refused([&] { (void)list.at("output.words"); }), "model: no parameter is called output.words");
  EXPECT_EQ(refused([&] { list.add("final_norm.gain", {16}, {}); }),
            "model: two parameters are called final_norm.gain");
}
