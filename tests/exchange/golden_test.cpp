// Our logits against transformers': tests/golden/exchange/make.py made them.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/comm/threads.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using support::TemporaryDirectory;

namespace {

class Hub : public ::testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path directory_ = hub_model(GetParam());
  Expected expected_ = expected_of(directory_);
  HubConfig config_ = read_hub_config(directory_);
  SoloCommunicator solo_;
};

std::vector<float> logits_in(const std::filesystem::path& directory, const std::vector<std::int32_t>& prompt,
                             const std::vector<std::int32_t>& source = {}) {
  SoloCommunicator solo;
  const HubConfig config = read_hub_config(directory);
  ReadModel model(config.model, solo);
  load_theirs(HubWeights(directory, config), model.named(), solo);
  return model.logits(prompt, source);
}

std::vector<float> read_in(const HubWeights& weights, const Recipe& recipe) {
  std::vector<float> out(std::size_t(recipe.shape.elements()));
  weights.read(recipe, 0, out);
  return out;
}

/// What is published in eight bits is stored in sixteen.
std::vector<float> as_stored(std::vector<float> numbers, Dtype dtype) {
  if (dtype == Dtype::bf16)
    for (float& x : numbers) x = float(bf16(x));
  return numbers;
}

}  // namespace

// f32 on both sides, the same operations in another order.
TEST_P(Hub, logits_are_those_of_transformers) {
  EXPECT_LT(difference(logits_in(directory_, expected_.prompt, expected_.source), expected_.logits), 1e-5);
}

TEST_P(Hub, recipes_are_the_tensors_that_a_model_has) {
  ReadModel model(config_.model, solo_);
  std::map<std::string, Dims> ours, built;
  for (const Recipe& recipe : recipes(config_.type, config_.model)) ours[recipe.name] = recipe.shape;
  for (const checkpoint::Named& named : model.named()) built[named.name] = named.pieces.front().where.global;
  EXPECT_EQ(ours, built);
}

TEST_P(Hub, a_written_directory_gives_the_same_numbers_and_the_same_settings) {
  const TemporaryDirectory folder;
  const HubWeights weights(directory_, config_);
  const auto read = [&](const Recipe& recipe) { return read_in(weights, weights.at(recipe.name)); };
  const Written written = write_hub(folder / "out", config_.model, read,
                                    {.dtype = Dtype::f32, .shard_bytes = 9000, .tokens = {}});
  EXPECT_GT(written.files, 1);
  const HubConfig again = read_hub_config(folder / "out");
  EXPECT_NO_THROW(must_agree(config_.model, again.model, "out"));
  EXPECT_TRUE(again.notices.empty());
  const HubWeights copy(folder / "out", again);
  for (const Recipe& recipe : weights.all())
    EXPECT_EQ(read_in(copy, copy.at(recipe.name)), read_in(weights, recipe)) << recipe.name;
}

TEST_P(Hub, a_checkpoint_is_written_without_memory_for_its_weights_and_read_back) {
  const TemporaryDirectory folder;
  const HubWeights weights(directory_, config_);
  const Streamed streamed = stream(weights, [&](const Recipe& r) { return weights.dtype(r); });
  checkpoint::save(checkpoint::step_directory(folder.path(), 0), streamed.tensors, "{}", solo_);
  StepWeights step(checkpoint::step_directory(folder.path(), 0));
  for (const Recipe& recipe : weights.all())
    EXPECT_EQ(step.read(recipe), as_stored(read_in(weights, recipe), weights.dtype(recipe))) << recipe.name;
}

INSTANTIATE_TEST_SUITE_P(Models, Hub, ::testing::ValuesIn(hub_models),
                         [](const auto& test) { return std::string(test.param); });

// Not of Gemma: its only key head cannot be cut in two.
TEST(HubRanks, each_reads_its_own_part_and_no_more) {
  for (const char* name : {"gpt2",
                           "mamba2",
                           "bamba",
                           "granitemoehybrid",
                           "granitemoehybrid_dense",
                           "gpt_neox",
                           "gpt_neox_serial",
                           "gptj",
                           "phi",
                           "falcon_grouped",
                           "falcon_serial",
                           "cohere",
                           "llama2",
                           "llama3",
                           "mistral",
                           "qwen2",
                           "qwen2_window",
                           "qwen3",
                           "phi3",
                           "smollm3",
                           "phi3_long",
                           "llama4_text",
                           "llama4_long",
                           "gemma2",
                           "glm4_moe",
                           "bert",
                           "bert_untied",
                           "megatron_bert_words",
                           "t5",
                           "t5_gated",
                           "t5_gated_tied",
                           "qwen3_next",
                           "qwen3_5",
                           "qwen3_5_moe",
                           "nemotron_h",
                           "nemotron_h_latent"}) {
    const HubConfig config = read_hub_config(hub_model(name));
    const Expected expected = expected_of(hub_model(name));
    run_as_threads(2, [&](Communicator& world) {
      ReadModel model(config.model, world);
      load_theirs(HubWeights(hub_model(name), config), model.named(), world);
      EXPECT_LT(difference(model.logits(expected.prompt, expected.source), expected.logits), 1e-5) << name;
    });
  }
}

// A model that we turn neighbor by neighbor, with gains around zero: the directory must mean the same.
TEST(HubWrite, models_in_our_own_ways_of_storing_become_theirs) {
  const TemporaryDirectory folder;
  ModelConfig config = tiny_llama();
  config.rotary.interleaved = true;
  config.norm_centered_gain = config.qk_norm = true;
  const auto ours =
      write_with_gains(config, folder / "out", [](std::size_t i) { return 0.1F * float(i % 5); });
  EXPECT_EQ(read_hub_config(folder / "out").type, "qwen3");
  EXPECT_LT(difference(logits_in(folder / "out", written_prompt), ours), 1e-5);
}

TEST(HubWrite, a_directory_that_holds_a_model_is_left_alone) {
  const TemporaryDirectory folder;
  std::ofstream(folder / "config.json") << "{}";
  EXPECT_EQ(refused([&] { write_hub(folder.path(), tiny_gpt2(), {}, {}); }),
            folder.path().string() + ": holds a model already (config.json); name another directory");
}

TEST(HubWrite, half_types_are_rounded_once) {
  const TemporaryDirectory folder;
  const HubConfig config = read_hub_config(hub_model("llama3"));
  const HubWeights weights(hub_model("llama3"), config);
  const auto read = [&](const Recipe& recipe) { return read_in(weights, weights.at(recipe.name)); };
  write_hub(folder / "out", config.model, read, {.dtype = Dtype::bf16, .tokens = {}});
  const HubConfig again = read_hub_config(folder / "out");
  EXPECT_EQ(again.dtype, Dtype::bf16);
  const HubWeights copy(folder / "out", again);
  for (const Recipe& recipe : weights.all()) {
    auto exact = read_in(weights, recipe);
    for (float& value : exact) value = float(bf16(value));
    EXPECT_EQ(read_in(copy, copy.at(recipe.name)), exact) << recipe.name;
  }
}
