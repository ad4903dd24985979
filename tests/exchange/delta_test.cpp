// Layers that remember, in Hugging Face's words.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

ModelConfig qwen3_next() { return read_hub_config(hub_model("qwen3_next")).model; }

/// What a recipe of the model is made of.
const Recipe& recipe_of(const std::vector<Recipe>& all, const std::string& name) {
  return *std::ranges::find(all, name, &Recipe::name);
}

}  // namespace

TEST(HubDelta, layers_that_remember_are_those_of_the_list_or_all_but_every_fourth) {
  EXPECT_EQ(qwen3_next().delta.layers, (std::vector{1, 0, 1, 0}));
  json object = settings_of("qwen3_next");
  object.erase("layer_types");
  EXPECT_EQ(hub_config_from_json(object.dump(), "c").model.delta.layers, (std::vector{1, 1, 1, 0}));
  object["full_attention_interval"] = 3;
  EXPECT_EQ(hub_config_from_json(object.dump(), "c").model.delta.layers, (std::vector{1, 1, 0, 1}));
}

TEST(HubDelta, of_qwen3_next_has_settings_that_go_without_saying) {
  json object = settings_of("qwen3_next");
  for (const char* name : {"rope_parameters", "head_dim", "linear_num_key_heads", "linear_num_value_heads",
                           "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
                           "norm_topk_prob", "mlp_only_layers", "decoder_sparse_step"})
    object.erase(name);
  const ModelConfig model = hub_config_from_json(object.dump(), "c").model;
  EXPECT_EQ(model.channels, 256);
  EXPECT_EQ(model.rotary.percent, 0.25);
  EXPECT_EQ(model.rotary.base, 10000);
  EXPECT_EQ(model.delta.key_heads, 16);
  EXPECT_EQ(model.delta.value_heads, 32);
  EXPECT_EQ(model.delta.key_channels, 128);
  EXPECT_EQ(model.delta.value_channels, 128);
  EXPECT_EQ(model.delta.taps, 4);
  EXPECT_FALSE(model.experts.router.softmax_first);
  EXPECT_EQ(model.experts.layers, (std::vector{1, 1, 1, 1}));
  EXPECT_TRUE(model.attention_gate && model.qk_norm && model.norm_centered_gain);
}

TEST(HubDelta, the_part_of_a_head_that_turns_is_read_from_where_either_version_writes_it) {
  json object = settings_of("qwen3_next");
  object.erase("rope_parameters");
  object.update({{"rope_theta", 1e7}, {"partial_rotary_factor", 0.75}, {"rope_scaling", nullptr}});
  const RotaryConfig found = hub_config_from_json(object.dump(), "c").model.rotary;
  EXPECT_EQ(found.base, 1e7);
  EXPECT_EQ(found.percent, 0.75);
  EXPECT_EQ(qwen3_next().rotary.percent, 0.5);
}

TEST(HubDelta, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("qwen3_next", {{"hidden_act", "gelu"}}),
            "c: \"hidden_act\" is \"gelu\", weft can only compute \"silu\"");
  EXPECT_EQ(said("qwen3_next", {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft has biases in attention and MLP, or in neither");
  EXPECT_EQ(said("qwen3_next", {{"use_sliding_window", true}}),
            "c: \"use_sliding_window\" is true, weft can only compute false");
  EXPECT_EQ(said("qwen3_next", {{"layer_types", {"linear_attention"}}}),
            "c: \"layer_types\" is [\"linear_attention\"], expected a list of 4 words");
  EXPECT_EQ(
      said("qwen3_next", {{"layer_types", {"mamba", "mamba", "mamba", "mamba"}}}),
      "c: \"layer_types\" is [\"mamba\",\"mamba\",\"mamba\",\"mamba\"], weft knows linear_attention and "
      "full_attention");
  EXPECT_EQ(said("qwen3_next", {{"linear_num_value_heads", 5}}),
            "c: model: {model.delta.value_heads} 5 is not a multiple of {model.delta.key_heads} 2");
  EXPECT_EQ(said("qwen3_next", {{"linear_key_head_dim", 512}}),
            "c: \"linear_key_head_dim\" is 512, expected a whole number from 1 to 256");
  for (const double part : {0.1, 1.5, 0.625, 1.6e66})
    EXPECT_EQ(said("qwen3_next", {{"rope_parameters", nullptr}, {"partial_rotary_factor", part}}),
              "c: \"partial_rotary_factor\" is " + json(part).dump() +
                  ", and of heads of 8 channels weft turns an even number and no more than all");
}

TEST(HubDelta, rows_of_theirs_stand_key_head_by_key_head) {
  const ModelConfig model = qwen3_next();  // two key heads of 6 channels, for two value heads of 4 each
  const auto all = recipes("qwen3_next", model);
  const auto runs_of = [&](const char* name) {
    std::vector<std::array<std::int64_t, 4>> out;
    for (const RowRun& run : recipe_of(all, name).runs)
      out.push_back({std::int64_t(run.part), run.from, run.to, run.count});
    return out;
  };
  using Runs = std::vector<std::array<std::int64_t, 4>>;
  EXPECT_EQ(runs_of("layers.0.delta.in.weight"),
            (Runs{{0, 0, 0, 28}, {1, 0, 28, 4}, {0, 28, 32, 28}, {1, 4, 60, 4}}));
  EXPECT_EQ(
      runs_of("layers.0.delta.filter"),
      (Runs{{0, 0, 0, 6}, {0, 12, 6, 6}, {0, 24, 12, 8}, {0, 6, 20, 6}, {0, 18, 26, 6}, {0, 32, 32, 8}}));
  EXPECT_EQ(runs_of("layers.1.attention.qkv.weight"), (Runs{{0, 0, 0, 8},
                                                            {0, 16, 8, 8},
                                                            {0, 8, 16, 8},
                                                            {0, 24, 24, 8},
                                                            {1, 0, 32, 8},
                                                            {2, 0, 40, 8},
                                                            {0, 32, 48, 8},
                                                            {0, 48, 56, 8},
                                                            {0, 40, 64, 8},
                                                            {0, 56, 72, 8},
                                                            {1, 8, 80, 8},
                                                            {2, 8, 88, 8}}));
}

// Theirs of Qwen 3.5 stand by what they are, all heads' together.
TEST(HubDelta, rows_of_qwen3_5_are_found_in_four_tensors) {
  const auto all = recipes("qwen3_5_text", read_hub_config(hub_model("qwen3_5")).model);
  std::vector<std::array<std::int64_t, 4>> runs;
  for (const RowRun& run : recipe_of(all, "layers.0.delta.in.weight").runs)
    runs.push_back({std::int64_t(run.part), run.from, run.to, run.count});
  EXPECT_EQ(runs, (std::vector<std::array<std::int64_t, 4>>{{0, 0, 0, 6},
                                                            {0, 12, 6, 6},
                                                            {0, 24, 12, 8},
                                                            {1, 0, 20, 8},
                                                            {2, 0, 28, 2},
                                                            {3, 0, 30, 2},
                                                            {0, 6, 32, 6},
                                                            {0, 18, 38, 6},
                                                            {0, 32, 44, 8},
                                                            {1, 8, 52, 8},
                                                            {2, 2, 60, 2},
                                                            {3, 2, 62, 2}}));
}

TEST(HubDelta, of_qwen3_5_has_settings_of_pictures_and_of_its_own) {
  json object = settings_of("qwen3_5_moe");
  object["rope_parameters"].update({{"mrope_interleaved", true}, {"mrope_section", {11, 11, 10}}});
  object.update({{"attn_output_gate", true}, {"mamba_ssm_dtype", "float32"}, {"mtp_num_hidden_layers", 1}});
  const HubConfig config = hub_config_from_json(object.dump(), "c");
  EXPECT_TRUE(config.notices.empty());
  EXPECT_EQ(config.model.experts.shared_hidden, 16);
  EXPECT_TRUE(config.model.experts.shared_gate);
  EXPECT_FALSE(config.model.experts.router.softmax_first);
  EXPECT_EQ(said("qwen3_5_moe", {{"norm_topk_prob", false}}),
            "c: \"norm_topk_prob\" is false, weft can only compute true");
  EXPECT_EQ(said("qwen3_5", {{"attn_output_gate", false}}),
            "c: \"attn_output_gate\" is false, weft can only compute true");
}

TEST(HubDelta, a_missing_tensor_is_named_and_further_tokens_are_passed_over) {
  EXPECT_EQ(said_without("qwen3_next", "model.layers.2.linear_attn.in_proj_ba.weight"),
            "lacks model.layers.2.linear_attn.in_proj_ba.weight, which layers.2.delta.in.weight is made of");
  EXPECT_EQ(said_without("qwen3_next", "", "model.layers.1.linear_attn.A_log"),
            "holds model.layers.1.linear_attn.A_log, which is no part of a qwen3_next model of 4 layers");
  EXPECT_EQ(said_without("qwen2_moe", "", "mtp.fc.weight"),
            "holds mtp.fc.weight, which is no part of a qwen2_moe model of 2 layers");
  const TemporaryDirectory folder;
  copy_changed("qwen3_next", folder.path(), "", "mtp.fc.weight");
  const HubWeights weights(folder.path(), read_hub_config(folder.path()));
  EXPECT_EQ(weights.notices(),
            std::vector{folder.path().string() + ": mtp.fc.weight and 0 more tensors are of a "
                                                 "part that weft does not make: they are passed over"});
}

TEST(HubDelta, that_no_family_has_are_named) {
  EXPECT_EQ(type_for(qwen3_next()), "qwen3_next");
  EXPECT_EQ(type_for(read_hub_config(hub_model("qwen3_5")).model), "qwen3_5_text");
  EXPECT_EQ(type_for(read_hub_config(hub_model("qwen3_5_moe")).model), "qwen3_next");
  const auto reason = [&](const std::function<void(ModelConfig&)>& change) {
    ModelConfig model = qwen3_next();
    change(model);
    return reason_in(refused([&] { (void)type_for(model); }));
  };
  EXPECT_EQ(reason([](auto& m) { m.positions = Positions::learned; }),
            "layers that remember, without rotary positions");
  EXPECT_EQ(reason([](auto& m) { m.norm = NormKind::layer; }), "layers that remember, with a layer norm");
  EXPECT_EQ(reason([](auto& m) { m.latent.on = true; }), "layers that remember, with latent attention");
  EXPECT_EQ(reason([](auto& m) { m.attention_gate = false; }),
            "layers that remember, without gates of what heads give");
  for (const auto& norms : std::vector<std::function<void(ModelConfig&)>>{
           [](auto& m) { m.qk_norm = false; }, [](auto& m) { m.qk_norm_whole = true; }})
    EXPECT_EQ(reason(norms), "layers that remember, without norms of each head's queries and keys");
  EXPECT_EQ(reason([](auto& m) { m.linear_bias = m.qkv_bias = true; }), "layers that remember, with biases");
  EXPECT_EQ(reason([](auto& m) { m.window = 4; }), "layers that remember, with a window");
  EXPECT_EQ(reason([](auto& m) { m.gated = false; }), "layers that remember, with an MLP that is not gated");
  EXPECT_EQ(reason([](auto& m) { m.sink = Sink::learned; }), "layers that remember, with attention sinks");
  for (const auto& shared : std::vector<std::function<void(ModelConfig&)>>{
           [](auto& m) { m.experts.shared_hidden = 0; }, [](auto& m) { m.experts.shared_gate = false; }})
    EXPECT_EQ(reason(shared), "layers that remember, with experts and no shared one behind a gate");
  EXPECT_EQ(reason([](auto& m) { m.experts.router.score = RouterScore::sigmoid; }),
            "layers that remember, with weights of experts that are no plain softmax");
  EXPECT_EQ(reason([](auto& m) {
              m.delta = {};
              m.attention_gate = false;
            }),
            "rotary positions on a part of each head, with experts");
  EXPECT_EQ(reason([](auto& m) { m.delta = {}; }), "gates of what heads give, without layers that remember");
}

// Neighbors turn, gains stand around one: the directory must mean the same.
TEST(HubDelta, models_in_our_own_ways_of_storing_become_theirs) {
  const TemporaryDirectory folder;
  ModelConfig config = qwen3_next();
  config.rotary.interleaved = true;
  config.norm_centered_gain = false;
  SoloCommunicator solo;
  const auto ours =
      write_with_gains(config, folder / "out", [](std::size_t i) { return 0.5F + 0.25F * float(i % 5); });
  const HubConfig again = read_hub_config(folder / "out");
  ReadModel copy(again.model, solo);
  load_theirs(HubWeights(folder / "out", again), copy.named(), solo);
  EXPECT_LT(difference(copy.logits(written_prompt), ours), 1e-5);
}
