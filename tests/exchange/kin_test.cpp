// Families that are a Llama, a Cohere, a GLM or a DeepSeek but for something: Cohere 2, StarCoder 2,
// Nemotron, GLM, Arcee, Seed-OSS, Ernie 4.5, dots.llm1, MiniMax-M2 and Kimi K2.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;

TEST(HubKin, types_are_kept_or_become_plainer_ones) {
  for (const char* name :
       {"cohere2", "starcoder2", "nemotron", "glm", "arcee", "ministral3", "dots1", "minimax_m2"})
    expect_kept(model_of(name), name);
  EXPECT_EQ(type_for(model_of("seed_oss")), "qwen2");
  EXPECT_EQ(type_for(model_of("ernie4_5")), "llama");
  EXPECT_EQ(type_for(model_with("ernie4_5", {{"use_bias", true}})), "llama");
  EXPECT_EQ(type_for(model_with("seed_oss", {{"attention_bias", false}})), "llama");
  EXPECT_EQ(type_for(model_with("glm", {{"attention_bias", false}})), "phi3");
  EXPECT_EQ(type_for(model_with("dots1", {{"sliding_window", nullptr}}, {"layer_types"})), "glm4_moe");
  expect_kept(
      model_with("cohere2", {{"layer_types", json::array({"sliding_attention", "sliding_attention",
                                                          "sliding_attention", "sliding_attention"})}}),
      "cohere2");
  expect_kept(model_with("starcoder2", {{"sliding_window", nullptr}, {"use_bias", false}}), "starcoder2");
  expect_kept(model_with("nemotron", {{"attention_bias", true}, {"mlp_bias", true}}), "nemotron");
}

TEST(HubKin, layer_norms_that_stand_one_behind_the_other_find_their_type) {
  expect_kept(model_with("starcoder2", {{"num_key_value_heads", 4}, {"sliding_window", nullptr}}),
              "gpt_neox");
  expect_kept(model_with("starcoder2", {{"num_key_value_heads", 1}, {"sliding_window", nullptr}}), "falcon");
  expect_kept(model_with("nemotron", {{"hidden_act", "gelu"}}), "nemotron");
  ModelConfig plain = model_of("nemotron");
  plain.channels = plain.hidden / plain.heads;
  plain.rotary.percent = 1;
  EXPECT_EQ(type_for(plain), "nemotron");
  plain.activation = Activation::gelu;
  EXPECT_EQ(type_for(plain), "starcoder2");
}

// Of Cohere 2 a layer without a window turns nothing.
TEST(HubKin, layers_of_one_kind_turn_all_or_none) {
  const json full{{"sliding_window", nullptr},
                  {"layer_types", std::vector<std::string>(4, "full_attention")}};
  const ModelConfig still = model_with("cohere2", full);
  EXPECT_EQ(still.window, 0);
  EXPECT_EQ(still.rotary.skip_layers, std::vector<int>(4, 1));
  expect_kept(still, "cohere2");
  EXPECT_EQ(model_with("cohere2", {{"sliding_window", nullptr}}, {"layer_types"}).rotary.skip_layers,
            still.rotary.skip_layers);
}

TEST(HubKin, settings_go_without_saying) {
  const ModelConfig cohere =
      model_with("cohere2", json::object(), {"layer_types", "sliding_window", "rope_parameters"});
  EXPECT_EQ(cohere.window_layers, (std::vector{1, 1, 1, 0}));
  EXPECT_EQ(cohere.rotary.skip_layers, (std::vector{0, 0, 0, 1}));
  EXPECT_EQ(cohere.window, 4096);
  EXPECT_EQ(cohere.rotary.base, 10000);
  const ModelConfig coder =
      model_with("starcoder2", json::object(), {"sliding_window", "num_key_value_heads", "use_bias"});
  EXPECT_EQ(coder.window, 0);
  EXPECT_EQ(coder.groups, 2);
  EXPECT_TRUE(coder.linear_bias);
  const ModelConfig nemotron =
      model_with("nemotron", json::object(), {"rope_parameters", "num_key_value_heads", "head_dim"});
  EXPECT_EQ(nemotron.rotary.percent, 0.5);
  EXPECT_EQ(nemotron.groups, 4);
  EXPECT_EQ(nemotron.channels, 4);
  const ModelConfig seed =
      model_with("seed_oss", {{"num_attention_heads", 8}}, {"num_key_value_heads", "attention_dropout"});
  EXPECT_EQ(seed.groups, 8);
  EXPECT_EQ(seed.attention_dropout, 0.1);
  EXPECT_EQ(seed.hidden_dropout, 0.1);
  const ModelConfig ernie =
      model_with("ernie4_5", json::object(), {"num_key_value_heads", "head_dim", "rope_parameters"});
  EXPECT_EQ(ernie.groups, 2);
  EXPECT_EQ(ernie.channels, 128);
  EXPECT_EQ(ernie.rotary.base, 500000);
  EXPECT_EQ(model_with("glm", json::object(), {"rope_parameters"}).rotary.percent, 0.5);
  EXPECT_EQ(model_with("minimax_m2", {{"rotary_dim", 2}}, {"rope_parameters"}).rotary.percent, 0.25);
  EXPECT_EQ(model_with("dots1", json::object(), {"layer_types", "max_window_layers"}).window, 0);
}

TEST(HubKin, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("cohere2", {{"sliding_window", nullptr},
                             {"num_hidden_layers", 1},
                             {"layer_types", json::array({"sliding_attention"})}}),
            "c: \"layer_types\" is [\"sliding_attention\"], but no window is switched on");
  EXPECT_EQ(said("cohere2", {{"use_parallel_block", false}}),
            "c: \"use_parallel_block\" is false, weft can only compute true");
  EXPECT_EQ(said("starcoder2", {{"norm_type", "rms_norm"}}),
            "c: \"norm_type\" is \"rms_norm\", weft can only compute \"layer_norm\"");
  EXPECT_EQ(said("nemotron", {{"mlp_bias", true}}), "c: \"mlp_bias\" is true, weft can only compute false");
  EXPECT_EQ(said("seed_oss", {{"attention_out_bias", true}}),
            "c: \"attention_out_bias\" is true, weft can only compute false");
  EXPECT_EQ(said("ernie4_5", {{"compression_ratio", 2.0}}),
            "c: \"compression_ratio\" is 2.0, weft can only compute 1.0");
  EXPECT_EQ(said("minimax_m2", {{"num_experts_per_tok", 1}}),
            "c: \"num_experts_per_tok\" is 1, and weft has no weight of 1 for one alone");
  EXPECT_EQ(said("minimax_m2", {{"scoring_func", "softmax"}}),
            "c: \"scoring_func\" is \"softmax\", weft can only compute \"sigmoid\"");
  EXPECT_EQ(said("minimax_m2", {{"shared_intermediate_size", 8}}),
            "c: \"shared_intermediate_size\" is 8, weft can only compute 0");
  EXPECT_EQ(said("dots1", {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft has biases in attention and MLP, or in neither");
}

TEST(HubKin, what_no_family_has_is_named) {
  EXPECT_EQ(reason("cohere2", [](auto& m) { m.rotary.skip_layers.clear(); }),
            "layer norms without biases, with layers without a window that turn, or the other way round");
  EXPECT_EQ(reason("cohere2", [](auto& m) { m.channels = 8; }),
            "layer norms without biases, with a window and heads that are not hidden / heads wide");
  EXPECT_EQ(reason("starcoder2", [](auto& m) { m.qkv_bias = false; }),
            "layers as StarCoder 2's or Nemotron's, with biases in some places");
  EXPECT_EQ(reason("starcoder2", [](auto& m) { m.rotary.percent = 0.5; }),
            "layers as StarCoder 2's, with a window and heads of which a part turns");
  EXPECT_EQ(reason("starcoder2",
                   [](auto& m) {
                     m.window_layers = {0, 1};
                   }),
            "layers as StarCoder 2's, with a window in some");
  EXPECT_EQ(reason("starcoder2", [](auto& m) { m.parallel_sublayers = ParallelSublayers::one_norm; }),
            "layers as GPT-NeoX's, Phi's or Cohere's, with a window or without rotary positions in some");
  EXPECT_EQ(reason("glm", [](auto& m) { m.window = 4; }),
            "rotary positions on a part of each head, with a window and biases");
  const std::string plain = "RMS norms and an MLP that is not gated, with ";
  EXPECT_EQ(reason("arcee", [](auto& m) { m.qk_norm = true; }), plain + "norms of queries and keys");
  EXPECT_EQ(reason("arcee", [](auto& m) { m.qkv_bias = false; }), plain + "biases in some places");
  EXPECT_EQ(reason("arcee", [](auto& m) { m.window = 4; }), plain + "a window");
  EXPECT_EQ(reason("arcee",
                   [](auto& m) {
                     m.rotary.skip_layers = {0, 1};
                   }),
            plain + "heads or layers that do not turn");
  EXPECT_EQ(reason("deepseek_v3", [](auto& m) { m.gated = false, m.experts = {}; }),
            "latent attention with an MLP that is not gated");
  EXPECT_EQ(reason("mixtral", [](auto& m) { m.gated = false; }),
            "rotary positions with experts that are not gated");
}

TEST(HubKin, experts_that_no_family_has_are_named) {
  const std::string chosen = "experts chosen by sigmoids, with a window and ";
  EXPECT_EQ(reason("dots1", [](auto& m) { m.qk_norm = false; }), chosen + "no norms of queries and keys");
  EXPECT_EQ(reason("dots1", [](auto& m) { m.qkv_bias = true; }), chosen + "biases");
  EXPECT_EQ(reason("dots1", [](auto& m) { m.rotary.percent = 0.5; }), chosen + "heads of which a part turns");
  EXPECT_EQ(reason("dots1", [](auto& m) { m.ahead.depths = 1; }), chosen + "further tokens");
  EXPECT_EQ(reason("minimax_m2", [](auto& m) { m.qkv_bias = true; }),
            "experts chosen by sigmoids, with biases and norms of whole queries and keys");
  EXPECT_EQ(reason("minimax_m2", [](auto& m) { m.window = 4; }), chosen + "norms of whole queries and keys");
  EXPECT_EQ(
      reason("minimax_m2", [](auto& m) { m.experts.shared_hidden = 24; }),
      "experts chosen by sigmoids beside a shared one or further tokens, with norms of whole queries and "
      "keys");
  EXPECT_EQ(
      reason("minimax_m2", [](auto& m) { m.experts.router.scaling = 2; }),
      "experts chosen by sigmoids in groups, with scaled weights or one a token, and norms of whole queries "
      "and keys");
  EXPECT_EQ(reason("minimax_m2",
                   [](auto& m) {
                     m.experts.layers = {0, 1};
                   }),
            "norms of whole queries and keys, with layers without experts");
}

TEST(HubKin, queries_of_a_ministral_grow_by_the_length_that_angles_are_stretched_from) {
  const ScoresConfig scores = model_of("ministral3").scores;
  EXPECT_EQ(scores.growth_every, 4);
  EXPECT_EQ(scores.growth, 0.7);
  EXPECT_EQ(scores.growth_of, QueryGrowth::all);
  const ModelConfig usual = model_with("ministral3", json::object(), {"rope_parameters"});
  EXPECT_EQ(usual.scores.growth_every, 16384);
  EXPECT_EQ(usual.rotary.scaling, RotaryScaling::yarn);
  EXPECT_EQ(usual.rotary.factor, 16);
  EXPECT_EQ(usual.rotary.base, 1e6);
  const json plain{
      {"rope_type", "default"}, {"original_max_position_embeddings", 5}, {"llama_4_scaling_beta", 0.1}};
  expect_kept(model_with("ministral3", {{"rope_parameters", plain}, {"sliding_window", 6}}), "ministral3");
  EXPECT_EQ(type_for(model_with("ministral3", {{"rope_parameters", {{"rope_type", "default"}}}})), "llama");
}

TEST(HubKin, what_no_ministral_has_is_named) {
  const std::string grow = "queries that grow in all layers, ";
  EXPECT_EQ(reason("ministral3",
                   [](auto& m) {
                     m.rotary.skip_layers = {0, 1};
                   }),
            "queries that grow in layers that do not turn, and in others");
  EXPECT_EQ(reason("ministral3", [](auto& m) { m.gated = false; }),
            grow + "with other norms or MLPs than Llama's");
  EXPECT_EQ(reason("ministral3", [](auto& m) { m.sink = Sink::learned; }),
            grow + "with layers of other kinds than attention and an MLP");
  EXPECT_EQ(reason("ministral3", [](auto& m) { m.qkv_bias = true; }), grow + "with biases or multipliers");
  EXPECT_EQ(reason("ministral3", [](auto& m) { m.qk_norm = true; }),
            grow + "with other attention than Mistral's");
  EXPECT_EQ(reason("ministral3", [](auto& m) { m.rotary.scaling = RotaryScaling::linear; }),
            grow + "with angles that are stretched otherwise than as YaRN does");
  EXPECT_EQ(reason("ministral3", [](auto& m) { m.rotary.original_positions = 9; }),
            grow + "by another length than angles are stretched from");
}

// GLM-4.7-Flash, whose norms of latents have another epsilon than the others.
TEST(HubKin, a_glm_with_latent_attention_is_a_deepseek) {
  const ModelConfig model = model_of("glm4_moe_lite");
  EXPECT_EQ(model.norm_epsilon, 1e-5);
  EXPECT_EQ(model.latent.norm_epsilon, 1e-6);
  EXPECT_EQ(type_for(model), "deepseek_v3");
  EXPECT_EQ(model_of("deepseek_v3").latent.norm_epsilon, 0);
  EXPECT_EQ(model_with("glm4_moe_lite", json::object(), {"mlp_layer_types", "routed_scaling_factor"})
                .experts.router.scaling,
            1.8);
  EXPECT_EQ(model_with("glm4_moe_lite", json::object(), {"mlp_layer_types"}).experts.layers,
            (std::vector{0, 1}));
  EXPECT_EQ(model_with("deepseek_v3", {{"rms_norm_eps", 1e-5}}).latent.norm_epsilon, 1e-6);
  EXPECT_EQ(reason("deepseek_v3", [](auto& m) { m.latent.norm_epsilon = 1e-4; }),
            "norms of latents with an epsilon other than 1e-6");
  EXPECT_EQ(said("glm4_moe_lite", {{"mlp_layer_types", {"dense"}}}),
            "c: \"mlp_layer_types\" is [\"dense\"], expected a list of 2 words");
  EXPECT_EQ(said("glm4_moe_lite", {{"mlp_layer_types", {"dense", "wide"}}}),
            "c: \"mlp_layer_types\" is [\"dense\",\"wide\"], weft knows dense and sparse");
}

// Its config.json says so, and its tensors are called as DeepSeek's.
TEST(HubKin, kimi_is_a_deepseek_under_another_name) {
  const ModelConfig kimi = model_with("deepseek_v3", {{"model_type", "kimi_k2"}});
  EXPECT_EQ(type_for(kimi), "deepseek_v3");
  EXPECT_NO_THROW(must_agree(model_of("deepseek_v3"), kimi, "c"));
  const json inside = settings_of("deepseek_v3");
  const HubConfig seeing =
      hub_config_from_json(json{{"model_type", "kimi_k25"}, {"text_config", inside}}.dump(), "c");
  EXPECT_EQ(seeing.type, "deepseek_v3");
  EXPECT_EQ(seeing.around, "kimi_k25");
}
