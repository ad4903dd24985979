// Heads of which a part turns, and layers that turn nothing: Phi-3 and SmolLM3.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

TEST(HubPhi3, has_settings_that_go_without_saying) {
  const ModelConfig model = model_with("phi3", json::object(),
                                       {"rope_parameters", "sliding_window", "num_key_value_heads",
                                        "rms_norm_eps", "head_dim", "tie_word_embeddings", "resid_pdrop"});
  EXPECT_EQ(model.rotary.base, 10000);
  EXPECT_EQ(model.rotary.percent, 1);
  EXPECT_EQ(model.window, 0);
  EXPECT_EQ(model.groups, 4);
  EXPECT_EQ(model.channels, 4);
  EXPECT_EQ(model.norm_epsilon, 1e-5);
  EXPECT_FALSE(model.tied_output);
  EXPECT_EQ(model.hidden_dropout, 0);
  EXPECT_EQ(type_for(model), "llama");
}

TEST(HubPhi3, is_read_in_the_words_of_either_version) {
  const ModelConfig old = model_with("phi3",
                                     {{"rope_theta", 250000.0},
                                      {"rope_scaling", nullptr},
                                      {"partial_rotary_factor", 0.5},
                                      {"resid_pdrop", 0.125}},
                                     {"rope_parameters"});
  EXPECT_EQ(old.rotary.base, 250000);
  EXPECT_EQ(old.rotary.percent, 0.5);
  EXPECT_EQ(old.hidden_dropout, 0.125);
  EXPECT_EQ(model_of("phi3").rotary.percent, 0.75);
}

TEST(HubPhi3, what_weft_cannot_compute_is_refused_by_name) {
  const json stretched = {{"type", "longrope"}, {"short_factor", {1.0, 1.0}}, {"long_factor", {2.0, 2.0}}};
  EXPECT_EQ(said("phi3", {{"rope_parameters", nullptr}, {"rope_scaling", stretched}}),
            "c: model: {model.rotary.short_factors} has 2 numbers, and 4 pairs of channels turn");
  EXPECT_EQ(said("phi3", {{"rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
            "c: rope scaling: \"short_factor\" is missing, expected a list of numbers above 0");
  EXPECT_EQ(said("phi3", {{"rope_parameters", {{"rope_type", "longrope"}, {"short_factor", {1.0, 0, 1}}}}}),
            "c: rope scaling: \"short_factor\" is [1.0,0,1], expected a list of numbers above 0");
  EXPECT_EQ(said("phi3", {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 4.0}}}}),
            "c: rope scaling: \"rope_type\" is \"linear\", weft knows default and longrope of a phi3");
  EXPECT_EQ(said("llama3", {{"rope_parameters", {{"rope_type", "longrope"}}}}),
            "c: rope scaling: \"rope_type\" is \"longrope\", weft knows default, linear, llama3 and yarn");
  for (const char* name : {"attention_bias", "mlp_bias", "lm_head_bias"})
    EXPECT_EQ(said("phi3", {{name, true}}),
              std::string("c: \"") + name + "\" is true, weft can only compute false");
  for (const double part : {0.4, 1.6e66})  // of the latter no count is as large as what it asks for
    EXPECT_EQ(said("phi3", {{"rope_parameters", {{"partial_rotary_factor", part}}}}),
              "c: \"partial_rotary_factor\" is " + json(part).dump() +
                  ", and of heads of 8 channels weft turns an even number and no more than all");
}

TEST(HubPhi3, stretches_angles_pair_by_pair) {
  const ModelConfig model = model_of("phi3_long");
  EXPECT_EQ(model.rotary.scaling, RotaryScaling::longrope);
  EXPECT_EQ(model.rotary.short_factors, (std::vector{1, 1.75}));
  EXPECT_EQ(model.rotary.long_factors, (std::vector{1.5, 3.75}));
  EXPECT_EQ(model.rotary.original_positions, 8);
  EXPECT_EQ(model.rotary.factor, 4);  // 32 positions of 8
  expect_kept(model, "phi3");
  json angles = settings_of("phi3_long")["rope_parameters"];
  angles["attention_factor"] = 1.25;
  const double factor = model_with("phi3_long", {{"rope_parameters", angles}}).rotary.factor;
  EXPECT_NEAR(std::sqrt(1 + std::log(factor) / std::log(8.0)), 1.25, 1e-12);
  const std::string alone = "angles that are stretched pair by pair, in a model that is not as Phi-3";
  EXPECT_EQ(reason("phi3_long", [](auto& m) { m.qkv_bias = true; }), alone);
  EXPECT_EQ(reason("phi3_long", [](auto& m) { m.norm_places = NormPlaces::around; }), alone);
  EXPECT_EQ(reason("phi3_long", [](auto& m) { m.rotary.factor = 1.3; }), alone);
}

TEST(HubPhi3, a_tensor_of_queries_keys_and_values_is_asked_for_whole) {
  EXPECT_EQ(said_without("phi3", "model.layers.1.self_attn.qkv_proj.weight"),
            "lacks model.layers.1.self_attn.qkv_proj.weight, which layers.1.attention.qkv.weight is made of");
  EXPECT_EQ(said_without("phi3", "model.layers.0.mlp.gate_up_proj.weight"),
            "lacks model.layers.0.mlp.gate_up_proj.weight, which layers.0.mlp.up.weight is made of");
  EXPECT_EQ(said_without("phi3", "", "model.layers.0.self_attn.q_proj.weight"),
            "holds model.layers.0.self_attn.q_proj.weight, which is no part of a phi3 model of 2 layers");
}

TEST(HubPhi3, what_no_family_has_is_named) {
  EXPECT_EQ(type_for(model_of("phi3")), "phi3");
  const std::string part = "rotary positions on a part of each head, with ";
  EXPECT_EQ(reason("phi3", [](auto& m) { m.qk_norm = true; }), part + "norms of queries and keys");
  EXPECT_EQ(reason("phi3", [](auto& m) { m.qkv_bias = true; }), part + "a window and biases");
  EXPECT_EQ(reason("phi3", [](auto& m) { m.sink = Sink::learned; }), part + "attention sinks");
  EXPECT_EQ(reason("phi3", [](auto& m) { m.window_layers = {0, 1}; }), part + "a window in some layers");
  EXPECT_EQ(reason("phi3", [](auto& m) { m.rotary.scaling = RotaryScaling::linear; }),
            part + "angles that are stretched");
  EXPECT_EQ(reason("phi3", [](auto& m) { m.rotary.percent = 0.9; }),
            "rotary positions on an odd number of channels");
}

TEST(HubSmolLM3, has_settings_that_go_without_saying) {
  const auto less = {"no_rope_layers",  "no_rope_layer_interval", "layer_types",        "num_key_value_heads",
                     "rope_parameters", "tie_word_embeddings",    "use_sliding_window", "rms_norm_eps"};
  const ModelConfig model = model_with("smollm3", json::object(), less);
  EXPECT_EQ(model.rotary.skip_layers, (std::vector{0, 0, 0, 1}));
  EXPECT_EQ(model.rotary.base, 2e6);
  EXPECT_EQ(model.groups, 4);
  EXPECT_EQ(model.window, 0);
  EXPECT_TRUE(model.tied_output);
  EXPECT_EQ(model.norm_epsilon, 1e-6);
  // Windows are there for layers without positions.
  EXPECT_EQ(model_with("smollm3", {{"use_sliding_window", true}}, less).window_layers,
            (std::vector{0, 0, 0, 1}));
  EXPECT_EQ(model_with("smollm3", {{"use_sliding_window", true}}, {"layer_types", "sliding_window"}).window,
            0);
  EXPECT_EQ(model_with("smollm3", {{"num_key_value_heads", nullptr}}).groups, 4);
}

TEST(HubSmolLM3, layers_without_positions_are_those_of_the_list_or_every_nth) {
  EXPECT_EQ(model_of("smollm3").rotary.skip_layers, (std::vector{0, 1, 0, 1}));
  EXPECT_EQ(model_of("smollm3").window_layers, (std::vector{0, 1, 0, 1}));
  const auto listed = [](const json& list) {
    return model_with("smollm3", {{"no_rope_layers", list}}).rotary.skip_layers;
  };
  EXPECT_EQ(listed({1, 1, 0, 1}), (std::vector{0, 0, 1, 0}));
  EXPECT_EQ(listed({0, 0, 0, 0}), (std::vector{1, 1, 1, 1}));
  EXPECT_TRUE(listed({1, 1, 1, 1, 0, 1}).empty());  // of more layers than there are
  EXPECT_TRUE(
      model_with("smollm3", {{"no_rope_layer_interval", 5}}, {"no_rope_layers"}).rotary.skip_layers.empty());
  EXPECT_EQ(said("smollm3", {{"no_rope_layers", {1, "0", 1, 0}}}),
            "c: \"no_rope_layers\" is [1,\"0\",1,0], expected a list of 0 and 1");
  EXPECT_EQ(said("smollm3", {{"no_rope_layers", {1, 0}}}),
            "c: \"no_rope_layers\" is [1,0], expected a list of 4 numbers");
}

TEST(HubSmolLM3, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("smollm3", {{"use_sliding_window", false}}),
            "c: \"layer_types\" is [\"full_attention\",\"sliding_attention\",\"full_attention\","
            "\"sliding_attention\"], but no window is switched on");
  EXPECT_EQ(said("smollm3", {{"mlp_bias", true}}),
            "c: \"attention_bias\" is false, weft has biases in MLPs only where attention has some");
  EXPECT_EQ(said("smollm3", {{"partial_rotary_factor", 0.5}}),
            "c: \"partial_rotary_factor\" is 0.5, weft can only compute 1.0");
}

TEST(HubSmolLM3, what_no_family_has_is_named) {
  EXPECT_EQ(type_for(model_of("smollm3")), "smollm3");
  const std::string skipping = "layers without rotary positions, with ";
  EXPECT_EQ(reason("smollm3", [](auto& m) { m.qk_norm = true; }), skipping + "norms of queries and keys");
  EXPECT_EQ(reason("smollm3", [](auto& m) { m.qkv_bias = true; }), skipping + "biases in some places");
  EXPECT_EQ(reason("smollm3", [](auto& m) { m.sink = Sink::learned; }), skipping + "attention sinks");
  EXPECT_EQ(reason("smollm3", [](auto& m) { m.experts.count = 2; }), skipping + "experts");
  EXPECT_EQ(reason("smollm3", [](auto& m) { m.latent.on = true; }), skipping + "latent attention");
  EXPECT_EQ(reason("smollm3", [](auto& m) { m.rotary.percent = 0.5; }),
            "layers without rotary positions among others of which a part turns");
  EXPECT_EQ(reason("qwen3_next",
                   [](auto& m) {
                     m.rotary = {.skip_layers = {0, 1, 0, 1}};
                   }),
            "layers without rotary positions among layers that remember");
  ModelConfig never = model_of("smollm3");
  never.rotary.skip_layers = {0, 0, 0, 0};
  never.window = 0;
  EXPECT_EQ(type_for(never), "llama");
}

// Neighbors turn: the directory must mean the same.
TEST(HubPhi3, models_in_our_own_ways_of_storing_become_theirs) {
  for (const char* name : {"phi3", "smollm3"}) {
    const TemporaryDirectory folder;
    ModelConfig config = model_of(name);
    config.rotary.interleaved = config.norm_centered_gain = true;
    const auto ours =
        write_with_gains(config, folder / "out", [](std::size_t i) { return 0.1F * float(i % 5); });
    const HubConfig again = read_hub_config(folder / "out");
    EXPECT_EQ(again.type, name);
    SoloCommunicator solo;
    ReadModel copy(again.model, solo);
    load_theirs(HubWeights(folder / "out", again), copy.named(), solo);
    EXPECT_LT(difference(copy.logits(written_prompt), ours), 1e-5) << name;
  }
}
