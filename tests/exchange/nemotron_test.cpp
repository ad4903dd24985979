// Layers that are one thing each, in Hugging Face's words.
#include <gtest/gtest.h>

#include <map>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

ModelConfig nemotron() { return read_hub_config(hub_model("nemotron_h")).model; }

ModelConfig changed(const json& changes, const std::vector<const char*>& without = {}) {
  json object = settings_of("nemotron_h");
  for (const char* name : without) object.erase(name);
  object.update(changes);
  return hub_config_from_json(object.dump(), "c").model;
}

std::vector<float> logits_in(const std::filesystem::path& directory,
                             const std::vector<std::int32_t>& prompt) {
  SoloCommunicator solo;
  const HubConfig config = read_hub_config(directory);
  ReadModel model(config.model, solo);
  load_theirs(HubWeights(directory, config), model.named(), solo);
  return model.logits(prompt);
}

using Runs = std::vector<std::array<std::int64_t, 3>>;
Runs runs_of(const std::string& name) {
  Runs out;
  for (const Recipe& recipe : recipes("nemotron_h", nemotron()))
    if (recipe.name == name)
      for (const RowRun& run : recipe.runs) out.push_back({run.from, run.to, run.count});
  return out;
}

// "backbone.layers.1.mixer.experts.3.up_proj.weight" of a directory, in the one tensor that experts share.
std::string in_memory(const std::string& name) {
  std::string out = name;
  if (const auto at = out.find("backbone."); at == 0) out.replace(0, 9, "model.");
  const auto number = out.find(".experts.");
  if (number == std::string::npos) return out;
  const auto dot = out.find('.', number + 9);
  return out.substr(0, number + 9) + out.substr(dot + 1, out.rfind(".weight") - dot - 1);
}

// The same numbers, as transformers has them in memory.
void store_as_in_memory(const std::filesystem::path& to) {
  std::filesystem::copy(hub_model("nemotron_h"), to, std::filesystem::copy_options::recursive);
  const auto file = to / "model.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  std::map<std::string, checkpoint::Entry> entries;
  std::map<std::string, std::string> bytes;
  const checkpoint::TensorFile from(hub_model("nemotron_h") / "model.safetensors");
  for (const checkpoint::Entry& entry : from.header().entries) {
    const std::string name = in_memory(entry.name);
    const bool fused = name.find(".experts.") != std::string::npos;
    const Shape shape = fused ? Shape{0, entry.shape[0], entry.shape[1]} : entry.shape;
    checkpoint::Entry& whole =
        entries.try_emplace(name, checkpoint::Entry{name, entry.dtype, shape, 0}).first->second;
    if (fused) whole.shape[0] += 1;
    const auto part = from.bytes(entry);
    bytes[name].append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  std::vector<checkpoint::Entry> list;
  for (const auto& [name, entry] : entries) list.push_back(entry);
  const std::string first = checkpoint::lay_out(list);
  checkpoint::write_tensors(file, first, list, [&](const checkpoint::Entry& entry, File& written) {
    written.write(bytes.at(entry.name));
  });
}

}  // namespace

TEST(HubNemotron, layers_are_words_of_either_kind_or_letters) {
  EXPECT_EQ(nemotron().hybrid.layers, "ME*-");
  EXPECT_EQ(changed({{"layers_block_type", {"mamba", "attention", "moe", "mlp", "mamba"}}}).hybrid.layers,
            "M*E-M");
  EXPECT_EQ(changed({{"layer_types", {"mamba", "moe"}}}, {"layers_block_type"}).hybrid.layers, "ME");
  const ModelConfig letters =
      changed({{"hybrid_override_pattern", "M-*E"}, {"num_hidden_layers", 4}}, {"layers_block_type"});
  EXPECT_EQ(letters.hybrid.layers, "M-*E");
  EXPECT_EQ(letters.layers, 4);
  EXPECT_EQ(letters.experts.layers, (std::vector{0, 0, 0, 1}));
}

TEST(HubNemotron, settings_that_go_without_saying_are_those_of_the_family) {
  const ModelConfig model =
      changed({{"mamba_num_heads", 8}},
              {"n_groups", "conv_kernel", "ssm_state_size", "intermediate_size", "mlp_hidden_act",
               "layer_norm_epsilon", "head_dim", "routed_scaling_factor", "n_group", "topk_group",
               "norm_topk_prob", "max_position_embeddings", "time_step_limit"});
  EXPECT_EQ(model.positions, Positions::none);
  EXPECT_EQ(model.channels, 128);
  EXPECT_EQ(model.ffn_hidden, 21504);
  EXPECT_EQ(model.max_positions, 4096);
  EXPECT_EQ(model.activation, Activation::squared_relu);
  EXPECT_EQ(model.experts.router.scaling, 1);
  EXPECT_EQ(model.experts.router.groups, 0);
  EXPECT_FALSE(model.gated || model.qkv_bias || model.linear_bias || model.tied_output);
  EXPECT_EQ(model.state.groups, 8);
  EXPECT_EQ(model.state.taps, 4);
  EXPECT_EQ(model.state.channels, 128);
}

TEST(HubNemotron, what_is_in_the_file_is_in_the_model) {
  const ModelConfig model = changed({{"layer_norm_epsilon", 1e-3}, {"moe_latent_size", 16}});
  EXPECT_EQ(model.norm_epsilon, 1e-3);
  EXPECT_EQ(model.state.norm_epsilon, 1e-3);
  EXPECT_EQ(model.state.heads, 4);
  EXPECT_EQ(model.state.groups, 2);
  EXPECT_EQ(model.state.channels, 5);
  EXPECT_EQ(model.state.head_channels, 6);
  EXPECT_EQ(model.experts.latent, 16);
  EXPECT_EQ(model.experts.shared_hidden, 16);
  EXPECT_EQ(model.experts.ffn_hidden, 12);
  EXPECT_EQ(model.experts.router.score, RouterScore::sigmoid);
  EXPECT_TRUE(model.experts.router.expert_bias);
  const ModelConfig latent = read_hub_config(hub_model("nemotron_h_latent")).model;
  EXPECT_EQ(latent.experts.router.groups, 4);
  EXPECT_EQ(latent.experts.router.groups_kept, 2);
}

TEST(HubNemotron, names_that_older_files_have_are_read) {
  const ModelConfig model = changed({{"mamba_n_groups", 1},
                                     {"mamba_d_conv", 3},
                                     {"mamba_conv_bias", true},
                                     {"attention_head_dim", 12},
                                     {"mamba_chunk_size", 64}},
                                    {"n_groups", "conv_kernel", "use_conv_bias", "head_dim"});
  EXPECT_EQ(model.state.groups, 1);
  EXPECT_EQ(model.state.taps, 3);
  EXPECT_EQ(model.channels, 12);
}

// Python writes a word that JSON has not; transformers 5 an object; some a number.
TEST(HubNemotron, times_without_a_limit_are_said_in_three_ways) {
  json object = settings_of("nemotron_h");
  object["time_step_limit"] = "HERE";
  object["_name_or_path"] = "to \"Infinity\" and \\";
  const auto with = [&](const std::string& limit) {
    std::string words = object.dump();
    words.replace(words.find("\"HERE\""), 6, limit);
    return refused([&] { (void)hub_config_from_json(words, "c"); });
  };
  EXPECT_EQ(with("[0.0, Infinity]"), "");
  EXPECT_EQ(with("[0, {\"__float__\": \"Infinity\"}]"), "");
  EXPECT_EQ(with("[0.0, 1e30]"), "");
  EXPECT_EQ(with("[0.0, 0.1]"),
            "c: \"time_step_limit\" is [0.0,0.1], weft can only compute times that have no limit, from 0 to "
            "Infinity");
  EXPECT_EQ(
      with("[0.001, Infinity]"),
      "c: \"time_step_limit\" is [0.001,{\"__float__\":\"Infinity\"}], weft can only compute times that "
      "have no limit, from 0 to Infinity");
  EXPECT_TRUE(with("[0.0, -Infinity]").starts_with("c: not JSON from byte "));
}

TEST(HubNemotron, what_weft_cannot_compute_is_refused_by_name) {
  const auto no = [](const char* name, const json& value) { return said("nemotron_h", {{name, value}}); };
  for (const char* name :
       {"use_bias", "mamba_proj_bias", "attention_bias", "mlp_bias", "tie_word_embeddings"})
    EXPECT_EQ(no(name, true), text("c: \"", name, "\" is true, weft can only compute false"));
  for (const char* name : {"use_conv_bias", "mamba_conv_bias"})
    EXPECT_EQ(no(name, false), text("c: \"", name, "\" is false, weft can only compute true"));
  EXPECT_EQ(no("mamba_hidden_act", "gelu"),
            "c: \"mamba_hidden_act\" is \"gelu\", weft can only compute \"silu\"");
  EXPECT_EQ(no("mlp_hidden_act", "mish"),
            "c: \"mlp_hidden_act\" is \"mish\", which is no activation that weft knows");
  EXPECT_EQ(no("sliding_window", 128), "c: \"sliding_window\" is 128, which weft cannot compute");
  EXPECT_EQ(
      no("mamba_dt_limit", {0, 1}),
      "c: \"mamba_dt_limit\" is [0,1], weft can only compute times that have no limit, from 0 to Infinity");
  EXPECT_EQ(no("rms_norm_eps", 1e-6), "c: \"rms_norm_eps\" is 1e-06, weft can only compute 1e-05");
  EXPECT_EQ(no("num_hidden_layers", 5), "c: \"num_hidden_layers\" is 5, weft can only compute 4");
  EXPECT_EQ(no("quantization_config", {{"quant_method", "modelopt"}}),
            "c: \"quantization_config\" is {\"quant_method\":\"modelopt\"}, weft reads fp8 in blocks, and "
            "mxfp4 of a gpt_oss");
}

TEST(HubNemotron, layers_that_weft_does_not_know_are_refused_by_name) {
  const auto no = [](const char* name, const json& value) { return said("nemotron_h", {{name, value}}); };
  EXPECT_EQ(no("layers_block_type", {"mamba", "sliding_attention"}),
            "c: \"layers_block_type\" is [\"mamba\",\"sliding_attention\"], weft knows linear_attention, "
            "full_attention, mlp and moe");
  EXPECT_EQ(no("layers_block_type", "M*"), "c: \"layers_block_type\" is \"M*\", expected a list of words");
  EXPECT_EQ(no("hybrid_override_pattern", "M*M*"),
            "c: \"hybrid_override_pattern\" is \"M*M*\", weft can only compute \"ME*-\"");
  EXPECT_EQ(no("layer_types", {"mamba"}),
            "c: \"layer_types\" is [\"mamba\"], and layers_block_type says ME*-");
  EXPECT_EQ(said("nemotron_h", {{"layers_block_type", nullptr}}),
            "c: \"hybrid_override_pattern\" is missing, expected a letter a layer");
  EXPECT_EQ(said("nemotron_h", {{"layers_block_type", nullptr}, {"hybrid_override_pattern", "MG"}}),
            "c: \"hybrid_override_pattern\" is \"MG\", weft knows M, *, - and E");
}

TEST(HubNemotron, experts_that_weft_cannot_choose_are_refused_by_name) {
  const auto no = [](const char* name, const json& value) { return said("nemotron_h", {{name, value}}); };
  EXPECT_EQ(no("n_shared_experts", 2), "c: \"n_shared_experts\" is 2, weft can only compute 1");
  EXPECT_EQ(no("norm_topk_prob", false),
            "c: \"norm_topk_prob\" is false, weft can only compute true with 4 experts of a token");
  EXPECT_EQ(no("num_experts_per_tok", 1),
            "c: \"norm_topk_prob\" is true, weft can only compute false with 1 expert of a token");
  EXPECT_EQ(changed({{"num_experts_per_tok", 1}, {"norm_topk_prob", false}}).experts.router.chosen, 1);
  EXPECT_EQ(said("nemotron_h", {{"n_group", 4}, {"topk_group", 1}}),
            "c: \"topk_group\" is 1, weft compares groups by their best 4 experts, and transformers by their "
            "best 2: of 4 experts of a token it can only keep 2 groups");
  EXPECT_EQ(no("num_local_experts", 8), "c: \"num_local_experts\" is 8, which weft cannot compute");
}

// Theirs has all gates and values, then all writes and reads (two groups of five channels), then times.
TEST(HubNemotron, rows_of_theirs_stand_group_by_group) {
  EXPECT_EQ(runs_of("layers.0.state.in.weight"), (Runs{{58, 0, 5},
                                                       {48, 5, 5},
                                                       {24, 10, 12},
                                                       {0, 22, 12},
                                                       {68, 34, 2},
                                                       {63, 36, 5},
                                                       {53, 41, 5},
                                                       {36, 46, 12},
                                                       {12, 58, 12},
                                                       {70, 70, 2}}));
  const Runs filters{{34, 0, 5}, {24, 5, 5}, {0, 10, 12}, {39, 22, 5}, {29, 27, 5}, {12, 32, 12}};
  EXPECT_EQ(runs_of("layers.0.state.filter"), filters);
  EXPECT_EQ(runs_of("layers.0.state.filter_bias"), filters);
}

TEST(HubNemotron, what_transformers_has_in_memory_is_read_as_well) {
  const TemporaryDirectory folder;
  store_as_in_memory(folder.path());
  const Expected expected = expected_of(hub_model("nemotron_h"));
  EXPECT_LT(difference(logits_in(folder.path(), expected.prompt), expected.logits), 1e-5);
}

TEST(HubNemotron, a_missing_tensor_and_one_too_many_are_named) {
  EXPECT_EQ(said_without("nemotron_h", "backbone.layers.0.mixer.D"),
            "lacks backbone.layers.0.mixer.D, which layers.0.state.skip is made of");
  EXPECT_EQ(
      said_without("nemotron_h", "backbone.layers.1.mixer.experts.3.up_proj.weight"),
      "lacks backbone.layers.1.mixer.experts.3.up_proj.weight, which layers.1.experts.3.up.weight is made "
      "of");
  EXPECT_EQ(said_without("nemotron_h", "", "backbone.layers.0.mixer.in_proj.bias"),
            "holds backbone.layers.0.mixer.in_proj.bias, which is no part of a nemotron_h model of 4 layers");
}
