// Models that see pictures: of what they are, the text is read.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

constexpr const char* wrapper = "mistral3";

HubConfig read_with(const std::string& name, const json& changes) {
  json object = settings_of(name);
  object.merge_patch(changes);
  return hub_config_from_json(object.dump(), "c");
}
std::string said_of(const std::string& name, const json& changes) {
  return refused([&] { (void)read_with(name, changes); });
}

/// The tensors of a directory under other names, a copy of one of them besides.
void copy_renamed(const std::string& name, const std::filesystem::path& to,
                  const std::function<std::string(std::string)>& called, const std::string& twice = "") {
  const checkpoint::TensorFile from(hub_model(name) / "model.safetensors");
  std::filesystem::create_directories(to);
  std::filesystem::copy(hub_model(name) / "config.json", to / "config.json");
  std::map<std::string, const checkpoint::Entry*> sources;
  std::vector<checkpoint::Entry> entries;
  for (const checkpoint::Entry& entry : from.header().entries) {
    const std::string now = called(entry.name);
    if (now.empty()) continue;
    sources[now] = &entry;
    entries.push_back({now, entry.dtype, entry.shape, 0});
    if (twice.empty() || !entry.name.ends_with("embed_tokens.weight")) continue;
    sources[twice] = &entry;
    entries.push_back({twice, entry.dtype, entry.shape, 0});
  }
  const std::string first = checkpoint::lay_out(entries);
  checkpoint::write_tensors(to / "model.safetensors", first, entries,
                            [&](const checkpoint::Entry& entry, File& written) {
                              written.write(from.bytes(*sources.at(entry.name)));
                            });
}

std::string replaced(std::string name, const std::string& from, const std::string& to) {
  return name.starts_with(from) ? to + name.substr(from.size()) : name;
}

std::vector<float> logits_in(const std::filesystem::path& directory,
                             const std::vector<std::int32_t>& prompt) {
  SoloCommunicator solo;
  const HubConfig config = read_hub_config(directory);
  ReadModel model(config.model, solo);
  load_theirs(HubWeights(directory, config), model.named(), solo);
  return model.logits(prompt);
}

}  // namespace

TEST(HubSeeing, a_models_text_is_read_and_the_rest_is_said) {
  const HubConfig config = read_hub_config(hub_model(wrapper));
  EXPECT_EQ(config.type, "mistral");
  EXPECT_EQ(config.around, wrapper);
  EXPECT_EQ(config.notices, std::vector{(hub_model(wrapper) / "config.json").string() +
                                        ": is of a mistral3, of which weft reads the text, a mistral"});
  const HubWeights weights(hub_model(wrapper), config);
  EXPECT_EQ(weights.notices(),
            std::vector{hub_model(wrapper).string() +
                        ": multi_modal_projector.linear_1.weight and 14 more tensors are of a "
                        "part that weft does not make: they are passed over"});
}

TEST(HubSeeing, what_is_said_around_the_text_counts_more) {
  const json inner = {{"text_config", {{"eos_token_id", 5}, {"dtype", "float16"}}}};
  EXPECT_EQ(read_with(wrapper, inner).ends, std::vector<std::int32_t>{5});
  EXPECT_EQ(read_with(wrapper, inner).dtype, Dtype::f32);
  EXPECT_EQ(read_with(wrapper, {{"dtype", nullptr}, {"text_config", {{"dtype", "float16"}}}}).dtype,
            Dtype::f16);
  EXPECT_EQ(read_with(wrapper, {{"eos_token_id", {3, 4}}}).ends, (std::vector<std::int32_t>{3, 4}));
  EXPECT_EQ(read_with(wrapper, {{"text_config", {{"model_type", nullptr}}}}).type, "mistral");
}

TEST(HubSeeing, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(
      said_of(wrapper, {{"text_config", nullptr}}),
      "c: \"model_type\" is \"mistral3\", of which weft reads the text, and \"text_config\" is missing, "
      "expected an object");
  EXPECT_EQ(said_of(wrapper, {{"text_config", {{"hidden_act", "mish"}}}}),
            "c: text_config: \"hidden_act\" is \"mish\", which is no activation that weft knows");
  EXPECT_EQ(said_of(wrapper, {{"quantization_config", {{"quant_method", "gptq"}}}}),
            "c: text_config: \"quantization_config\" is {\"quant_method\":\"gptq\"}, weft reads fp8 in "
            "blocks, and mxfp4 of a gpt_oss");
  const std::string other = said_of(wrapper, {{"text_config", {{"model_type", "mistral4"}}}});
  EXPECT_EQ(other.substr(0, other.find(" gpt2")),
            "c: text_config: \"model_type\" is \"mistral4\", weft reads");
}

TEST(HubSeeing, the_text_has_either_versions_names) {
  const TemporaryDirectory folder;
  const auto newer = [](const std::string& name) {
    return replaced(
        replaced(replaced(name, "language_model.model.", "model.language_model."), "language_model.", ""),
        "vision_tower.", "model.vision_tower.");
  };
  copy_renamed(wrapper, folder / "out", newer);
  const Expected expected = expected_of(hub_model(wrapper));
  EXPECT_LT(difference(logits_in(folder / "out", expected.prompt), expected.logits), 1e-5);
  EXPECT_EQ(logits_in(folder / "out", expected.prompt), logits_in(hub_model(wrapper), expected.prompt));
}

// Published files do not say it, and what transformers says of them is not so.
TEST(HubSeeing, whether_the_output_is_the_embedding_is_seen_from_the_tensors) {
  const auto tied = [](const std::filesystem::path& directory) {
    return read_hub_config(directory).model.tied_output;
  };
  const auto all = [](std::string name) { return name; };
  const auto without_output = [](std::string name) {
    return name.ends_with("lm_head.weight") ? std::string() : name;
  };
  const TemporaryDirectory folder;
  EXPECT_FALSE(tied(hub_model(wrapper)));
  copy_renamed(wrapper, folder / "none", without_output);
  EXPECT_TRUE(tied(folder / "none"));
  const auto say_tied = [](const std::filesystem::path& directory) {
    json object;
    std::ifstream(directory / "config.json") >> object;
    object["tie_word_embeddings"] = true;
    std::filesystem::permissions(directory / "config.json", std::filesystem::perms::owner_all);
    std::ofstream(directory / "config.json") << object;
  };
  copy_renamed(wrapper, folder / "own", all);
  say_tied(folder / "own");
  EXPECT_FALSE(tied(folder / "own"));
  copy_renamed(wrapper, folder / "twice", without_output, "language_model.lm_head.weight");
  EXPECT_FALSE(tied(folder / "twice"));
  say_tied(folder / "twice");
  EXPECT_TRUE(tied(folder / "twice"));
  EXPECT_NO_THROW(HubWeights(folder / "twice", read_hub_config(folder / "twice")));
}

TEST(HubSeeing, tensors_of_the_text_are_accounted_for) {
  const TemporaryDirectory folder;
  copy_renamed(wrapper, folder / "lacks", [](std::string name) {
    return name == "language_model.model.norm.weight" ? std::string() : name;
  });
  const auto weights = [](const std::filesystem::path& directory) {
    return refused([&] { HubWeights(directory, read_hub_config(directory)); });
  };
  EXPECT_EQ(weights(folder / "lacks"),
            (folder / "lacks").string() + ": lacks model.norm.weight, which final_norm.gain is made of");
  copy_renamed(wrapper, folder / "more", [](const std::string& name) {
    return replaced(name, "vision_tower.ln_pre", "language_model.model.layers.7");
  });
  EXPECT_EQ(weights(folder / "more"),
            (folder / "more").string() +
                ": holds model.layers.7.weight, which is no part of a mistral model of 2 layers");
  copy_renamed(wrapper, folder / "both", [](const std::string& name) {
    return replaced(name, "vision_tower.ln_pre", "model.language_model.norm");
  });
  EXPECT_EQ(weights(folder / "both"),
            (folder / "both").string() +
                ": language_model.model.norm.weight and model.language_model.norm.weight are both "
                "model.norm.weight");
}

TEST(HubSeeing, experts_in_one_tensor_a_layer_are_found_there) {
  const HubConfig config = read_hub_config(hub_model("qwen3_5_moe_seeing"));
  const HubWeights weights(hub_model("qwen3_5_moe_seeing"), config);
  const Recipe& up = weights.at("layers.1.experts.3.up.weight");
  ASSERT_EQ(up.parts.size(), 2U);
  for (const Theirs& half : up.parts) EXPECT_EQ(half.name, "model.layers.1.mlp.experts.gate_up_proj");
  EXPECT_EQ(up.parts[1].slab, 3);
  EXPECT_EQ(up.parts[1].first_row, 12);
  EXPECT_EQ(weights.at("layers.0.experts.2.down.weight").parts.front().name,
            "model.layers.0.mlp.experts.down_proj");
  EXPECT_EQ(read_hub_config(hub_model("qwen3_5_seeing")).type, "qwen3_5_text");
}
