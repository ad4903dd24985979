// Norms behind layers and around them, angles of layers that look through a window, and multipliers: OLMo 2
// and 3, Exaone 4, Gemma 3, GLM-4, Granite.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

const json plain_angles = {{"rope_type", "default"}, {"rope_theta", 500.0}};

}  // namespace

TEST(HubNorms, stand_where_a_type_has_them) {
  for (const auto& [name, places] :
       {std::pair{"olmo2", NormPlaces::behind}, std::pair{"olmo3", NormPlaces::behind},
        std::pair{"exaone4", NormPlaces::behind}, std::pair{"gemma3_text", NormPlaces::around},
        std::pair{"gemma2", NormPlaces::around}, std::pair{"glm4", NormPlaces::around},
        std::pair{"granite", NormPlaces::before}}) {
    EXPECT_EQ(model_of(name).norm_places, places) << name;
    expect_kept(model_of(name), name);
  }
  const auto all = recipes("glm4", model_of("glm4"));
  const auto of = [&](const char* ours) {
    return std::ranges::find(all, ours, &Recipe::name)->parts.front().name;
  };
  EXPECT_EQ(of("layers.0.attention_norm_behind.gain"), "model.layers.0.post_self_attn_layernorm.weight");
  EXPECT_EQ(of("layers.0.mlp_norm.gain"), "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(
      said_without("olmo2", "model.layers.0.post_feedforward_layernorm.weight"),
      "lacks model.layers.0.post_feedforward_layernorm.weight, which layers.0.mlp_norm_behind.gain is made "
      "of");
  EXPECT_EQ(said_without("olmo2", "", "model.layers.0.input_layernorm.weight"),
            "holds model.layers.0.input_layernorm.weight, which is no part of a olmo2 model of 2 layers");
}

TEST(HubOlmo, has_settings_that_go_without_saying) {
  const ModelConfig second =
      model_with("olmo2", json::object(), {"rope_parameters", "num_key_value_heads", "rms_norm_eps"});
  EXPECT_EQ(second.rotary.base, 10000);
  EXPECT_EQ(second.groups, 4);
  EXPECT_EQ(second.norm_epsilon, 1e-5);
  EXPECT_TRUE(second.qk_norm_whole);
  const ModelConfig third =
      model_with("olmo3", json::object(), {"rope_parameters", "sliding_window", "layer_types"});
  EXPECT_EQ(third.rotary.base, 500000);
  EXPECT_FALSE(third.rotary.window_base);
  EXPECT_EQ(third.window, 4096);
  EXPECT_EQ(third.window_layers, (std::vector{1, 1, 1, 0}));
}

TEST(HubOlmo, angles_of_full_layers_alone_are_stretched) {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 8}};
  const ModelConfig old =
      model_with("olmo3", {{"rope_theta", 700.0}, {"rope_scaling", yarn}}, {"rope_parameters"});
  EXPECT_EQ(old.rotary.scaling, RotaryScaling::yarn);
  EXPECT_EQ(old.rotary.base, 700);
  EXPECT_EQ(old.rotary.window_base, 700);
  EXPECT_EQ(old.rotary.original_positions, 8);
  EXPECT_EQ(model_of("olmo3").rotary.window_base, 500);
  // Whatever layers that there are none of turn by.
  const json all_full = json::array({"full_attention", "full_attention", "full_attention", "full_attention"});
  const ModelConfig full = model_with("olmo3", {{"layer_types", all_full}});
  EXPECT_FALSE(full.rotary.window_base);
  EXPECT_EQ(full.window, 0);
  EXPECT_EQ(type_for(full), "olmo2");
}

TEST(HubOlmo, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("olmo2", {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft has biases in attention and MLP, or in neither");
  const json stretched = {{"rope_type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(
      said("olmo3",
           {{"rope_parameters", {{"full_attention", plain_angles}, {"sliding_attention", stretched}}}}),
      "c: rope scaling: sliding_attention: stretched, and weft can only stretch angles of full_attention");
  EXPECT_EQ(said("olmo3", {{"rope_parameters", plain_angles}}),
            "c: rope scaling: \"rope_theta\" is 500.0, weft knows full_attention and sliding_attention");
  EXPECT_EQ(said("olmo3", {{"rope_parameters", {{"full_attention", {{"rope_type", "dynamic"}}}}}}),
            "c: rope scaling: full_attention: \"rope_type\" is \"dynamic\", weft knows default, linear, "
            "llama3 and yarn");
  EXPECT_EQ(said("olmo3", {{"layer_types",
                            {"linear_attention", "full_attention", "full_attention", "full_attention"}}}),
            "c: \"layer_types\" is "
            "[\"linear_attention\",\"full_attention\",\"full_attention\",\"full_attention\"], "
            "weft knows full_attention and sliding_attention");
}

TEST(HubOlmo, what_no_family_has_is_named) {
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.linear_bias = m.qkv_bias = true; }),
            "norms of what layers give, with biases");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.norm = NormKind::layer; }),
            "norms of what layers give, of another kind than RMS");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.positions = Positions::learned; }),
            "norms of what layers give, without rotary positions");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.gated = false; }),
            "norms of what layers give, with an MLP that is not gated");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.experts.count = 2; }), "norms of what layers give, with experts");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.latent.on = true; }),
            "norms of what layers give, with layers of other kinds than attention");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.sink = Sink::learned; }),
            "norms of what layers give, with attention sinks");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.rotary.percent = 0.5; }),
            "norms of what layers give, with heads of which a part turns");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.embedding_multiplier = 2; }),
            "norms of what layers give, with multipliers");
  EXPECT_EQ(reason("olmo3",
                   [](auto& m) {
                     m.rotary.skip_layers = {0, 1, 0, 1};
                   }),
            "norms of what layers give and of whole queries, with layers without rotary positions");
  EXPECT_EQ(reason("olmo3", [](auto& m) { m.rotary.window_base.reset(); }),
            "norms of what layers give and of whole queries, with angles that are stretched in all layers");
  EXPECT_EQ(reason("qwen3",
                   [](auto& m) {
                     m.window = 4;
                     m.rotary.window_base = 7;
                   }),
            "angles of their own in layers that look through a window");
}

TEST(HubExaone, layers_without_a_window_turn_nothing_where_others_have_one) {
  EXPECT_EQ(model_of("exaone4").rotary.skip_layers, (std::vector{0, 1, 0, 1}));
  EXPECT_EQ(model_of("exaone4").window_layers, (std::vector{1, 0, 1, 0}));
  EXPECT_TRUE(model_of("exaone4_full").rotary.skip_layers.empty());
  EXPECT_EQ(model_of("exaone4_full").window, 0);
  expect_kept(model_of("exaone4_full"), "exaone4");
  const ModelConfig usual =
      model_with("exaone4", json::object(), {"layer_types", "sliding_window", "sliding_window_pattern"});
  EXPECT_EQ(usual.window, 4096);
  EXPECT_EQ(usual.rotary.skip_layers, (std::vector{0, 0, 0, 1}));
  EXPECT_EQ(model_with("exaone4", {{"sliding_window_pattern", "LLLG"}}).rotary.skip_layers,
            (std::vector{0, 1, 0, 1}));  // the list says it
  const json none =
      json::array({"sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"});
  EXPECT_TRUE(model_with("exaone4", {{"layer_types", none}}).rotary.skip_layers.empty());
  const json other =
      json::array({"full_attention", "sliding_attention", "sliding_attention", "full_attention"});
  EXPECT_EQ(model_with("exaone4", {{"layer_types", other}}).rotary.skip_layers, (std::vector{1, 0, 0, 1}));
  EXPECT_EQ(said("exaone4", {{"sliding_window", nullptr}}),
            "c: \"layer_types\" is "
            "[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"], "
            "but no window is switched on");
}

TEST(HubExaone, what_no_family_has_is_named) {
  const std::string alone = "norms of what layers give alone, ";
  EXPECT_EQ(reason("exaone4", [](auto& m) { m.qk_norm = false; }),
            alone + "without norms of queries and keys");
  for (const std::vector<int>& skipped : {std::vector<int>(), std::vector{0, 0, 1, 0}})
    EXPECT_EQ(reason("exaone4", [&](auto& m) { m.rotary.skip_layers = skipped; }),
              alone + "with layers without a window that turn, or the other way round");
  EXPECT_EQ(reason("exaone4", [](auto& m) { m.rotary.window_base = 7; }),
            alone + "with angles of their own in some layers");
}

// Where pictures are seen too, the text's settings are hardly said.
TEST(HubGemma3, has_settings_that_go_without_saying) {
  const json little = {{"model_type", "gemma3"},
                       {"text_config",
                        {{"hidden_size", 2560},
                         {"intermediate_size", 10240},
                         {"model_type", "gemma3_text"},
                         {"num_hidden_layers", 12},
                         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                         {"sliding_window", 1024}}}};
  const HubConfig config = hub_config_from_json(little.dump(), "c");
  const ModelConfig& model = config.model;
  EXPECT_EQ(config.notices,
            std::vector<std::string>{"c: is of a gemma3, of which weft reads the text, a gemma3_text"});
  EXPECT_EQ(model.vocabulary, 262208);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.groups, 4);
  EXPECT_EQ(model.channels, 256);
  EXPECT_EQ(model.max_positions, 131072);
  EXPECT_EQ(model.softmax_scale, 0);
  EXPECT_EQ(model.embedding_multiplier, std::sqrt(2560.0));
  EXPECT_EQ(model.rotary.base, 1e6);
  EXPECT_EQ(model.rotary.factor, 8);
  EXPECT_EQ(model.rotary.window_base, 10000);
  EXPECT_EQ(model.window, 1024);
  EXPECT_EQ(model.window_layers, (std::vector{1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0}));
  EXPECT_TRUE(model.tied_output && model.qk_norm && model.norm_centered_gain);
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(model.norm_epsilon, 1e-6);
}

TEST(HubGemma, keeps_an_output_of_its_own) {
  expect_kept(model_with("gemma", {{"tie_word_embeddings", false}}), "gemma");
}

TEST(HubGemma3, is_read_in_the_words_of_either_version) {
  const ModelConfig old = model_with("gemma3_text",
                                     {{"rope_theta", 3000.0},
                                      {"rope_local_base_freq", 200.0},
                                      {"sliding_window_pattern", 2},
                                      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}},
                                     {"rope_parameters", "layer_types", "_sliding_window_pattern"});
  EXPECT_EQ(old.rotary.base, 3000);
  EXPECT_EQ(old.rotary.window_base, 200);
  EXPECT_EQ(old.rotary.factor, 2);
  EXPECT_EQ(old.window_layers, (std::vector{1, 0, 1, 0}));
  ModelConfig large = model_of("gemma3_text");
  large.softmax_scale = 1 / std::sqrt(168.0);
  expect_kept(large, "gemma3_text");
}

TEST(HubGemma3, what_weft_cannot_compute_is_refused_by_name) {
  for (const char* name : {"final_logit_softcapping", "attn_logit_softcapping"}) {
    EXPECT_EQ(said("gemma3_text", {{name, 0.0}}),
              std::string("c: \"") + name + "\" is 0.0, expected a number above 0");
    EXPECT_EQ(said("llama2", {{name, 30.0}}),
              std::string("c: \"") + name + "\" is 30.0, which weft cannot compute");
  }
  EXPECT_EQ(said("gemma3_text", {{"use_bidirectional_attention", true}}),
            "c: \"use_bidirectional_attention\" is true, weft can only compute false");
  EXPECT_EQ(said("gemma3_text", {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft has biases in attention and MLP, or in neither");
  EXPECT_EQ(said("gemma3_text", {{"query_pre_attn_scalar", 2.5}}),
            "c: \"query_pre_attn_scalar\" is 2.5, expected a whole number from 1 to 2147483647");
}

TEST(HubGemma3, what_no_family_has_is_named) {
  const std::string around = "norms around layers as Gemma's, ";
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.activation = Activation::silu; }),
            around + "with another activation than gelu's tanh form");
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.embedding_multiplier = 1; }),
            around + "without embeddings that are multiplied by the root of their width");
  for (const double scale : {0.3, 1e-30})  // of the latter the number is beyond what a file may say
    EXPECT_EQ(reason("gemma3_text", [&](auto& m) { m.softmax_scale = scale; }),
              around + "with scores divided by the root of no whole number");
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.scores.cap = 2; }),
            "norms around layers as Gemma 3's, with caps of scores, which transformers computes without");
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.rotary.window_base.reset(); }),
            around + "with angles that are stretched in all layers");
  EXPECT_EQ(reason("gemma3_text",
                   [](auto& m) {
                     m.rotary.skip_layers = {0, 1, 0, 1};
                   }),
            around + "with layers without rotary positions");
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.qk_norm_whole = true; }),
            "norms around layers, with norms of whole queries and keys");
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.qk_norm_plain = true; }),
            "chunks, queries that grow, norms without gains or weighed rows, with other norms or MLPs than "
            "Llama's");
  EXPECT_EQ(reason("gemma3_text", [](auto& m) { m.residual_multiplier = 2; }),
            "norms of what layers give, with multipliers");
}

TEST(HubGemma2, has_settings_that_go_without_saying) {
  const ModelConfig model =
      model_with("gemma2", json::object(),
                 {"attn_logit_softcapping", "final_logit_softcapping", "layer_types", "sliding_window",
                  "query_pre_attn_scalar", "head_dim", "num_key_value_heads", "max_position_embeddings",
                  "vocab_size", "rope_parameters"});
  EXPECT_EQ(model.scores.cap, 50);
  EXPECT_EQ(model.output_cap, 30);
  EXPECT_EQ(model.window, 4096);
  EXPECT_EQ(model.window_layers, (std::vector{1, 0, 1, 0}));
  EXPECT_EQ(model.channels, 256);
  EXPECT_EQ(model.groups, 4);
  EXPECT_EQ(model.max_positions, 8192);
  EXPECT_EQ(model.vocabulary, 256000);
  EXPECT_EQ(model.rotary.base, 10000);
  const ModelConfig none =
      model_with("gemma2", {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
  EXPECT_EQ(none.scores.cap + none.output_cap, 0);
  expect_kept(none, "gemma2");
  expect_kept(model_of("gemma2"), "gemma2");
  expect_kept(model_with("gemma3_text", {{"final_logit_softcapping", 7.0}}), "gemma3_text");
  EXPECT_EQ(model_with("gemma3_text", {{"attn_logit_softcapping", 7.0}}).scores.cap, 0);
}

TEST(HubGemma2, what_no_family_has_is_named) {
  const std::string around = "norms around layers as Gemma's, ";
  EXPECT_EQ(reason("gemma2", [](auto& m) { m.activation = Activation::silu; }),
            around + "with another activation than gelu's tanh form");
  EXPECT_EQ(reason("gemma2", [](auto& m) { m.embedding_multiplier = 3; }),
            around + "without embeddings that are multiplied by the root of their width");
  EXPECT_EQ(reason("gemma2", [](auto& m) { m.rotary.window_base = 7; }),
            "norms around layers as Gemma 2's, with angles of their own in some layers");
  EXPECT_EQ(reason("llama2", [](auto& m) { m.scores.cap = 7; }),
            "caps of scores or logits, without norms around layers");
  EXPECT_EQ(reason("olmo2", [](auto& m) { m.output_cap = 7; }),
            "caps of scores or logits, without norms around layers");
  EXPECT_EQ(reason("gpt2", [](auto& m) { m.scores.chunk = 7; }),
            "chunks, queries that grow, norms without gains or weighed rows, without rotary positions");
}

TEST(HubGlm4, has_settings_that_go_without_saying) {
  const ModelConfig model =
      model_with("glm4", json::object(),
                 {"rope_parameters", "num_key_value_heads", "rms_norm_eps", "head_dim", "attention_bias"});
  EXPECT_EQ(model.rotary.percent, 0.5);
  EXPECT_TRUE(model.rotary.interleaved && model.qkv_bias);
  EXPECT_FALSE(model.linear_bias);
  EXPECT_EQ(model.groups, 2);
  EXPECT_EQ(model.channels, 128);
  EXPECT_EQ(model.norm_epsilon, 1.5625e-7);
  EXPECT_EQ(reason("glm4", [](auto& m) { m.window = 4; }),
            "norms around layers, with a window and no norms of queries and keys");
  EXPECT_EQ(reason("glm4",
                   [](auto& m) {
                     m.rotary.skip_layers = {0, 1, 0, 1};
                   }),
            "norms around layers, with layers without rotary positions");
}

TEST(HubGranite, has_multipliers) {
  const ModelConfig model = model_of("granite");
  EXPECT_EQ(model.embedding_multiplier, 12);
  EXPECT_EQ(model.softmax_scale, 0.4);
  EXPECT_EQ(model.residual_multiplier, 0.22);
  EXPECT_EQ(model.output_multiplier, 1 / 7.0);
  const ModelConfig usual =
      model_with("granite", json::object(),
                 {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling",
                  "num_key_value_heads", "rope_parameters", "attention_bias", "mlp_bias"});
  EXPECT_EQ(usual.softmax_scale, 1);
  EXPECT_EQ(usual.groups, 4);
  EXPECT_FALSE(usual.qkv_bias);
  EXPECT_EQ(usual.residual_multiplier * usual.embedding_multiplier * usual.output_multiplier, 1);
  for (const double scaling : {3.0, 13.0, 49.0, 98.0, 0.3, 1.1}) {
    SCOPED_TRACE(scaling);
    expect_kept(model_with("granite", {{"logits_scaling", scaling}}), "granite");
  }
  // What has none of them is a Llama.
  EXPECT_EQ(type_for(model_with("granite", {{"embedding_multiplier", 1.0},
                                            {"attention_multiplier", 0.5},
                                            {"residual_multiplier", 1.0},
                                            {"logits_scaling", 1.0}})),
            "llama");
  EXPECT_EQ(said("granite", {{"residual_multiplier", 0.0}}),
            "c: \"residual_multiplier\" is 0.0, expected a number above 0");
  EXPECT_EQ(said("granite", {{"logits_scaling", 1e-300}}),
            "c: \"logits_scaling\" is 1e-300, expected a number from 1e-9 to 1e9");
  EXPECT_EQ(said("granite", {{"attention_bias", false}}),
            "c: \"attention_bias\" is false, weft has biases in MLPs only where attention has some");
}

TEST(HubGranite, what_no_family_has_is_named) {
  EXPECT_EQ(reason("granite", [](auto& m) { m.qk_norm = true; }),
            "multipliers with norms of queries and keys");
  EXPECT_EQ(reason("granite", [](auto& m) { m.window = 4; }), "multipliers with a window");
  EXPECT_EQ(reason("granite", [](auto& m) { m.linear_bias = false; }),
            "multipliers with biases in some places");
  EXPECT_EQ(reason("granite", [](auto& m) { m.sink = Sink::learned; }), "multipliers with attention sinks");
  EXPECT_EQ(reason("deepseek_v3", [](auto& m) { m.softmax_scale = 2; }),
            "multipliers in layers of other kinds than attention and an MLP");
  EXPECT_EQ(
      reason("llama3",
             [](auto& m) {
               m.residual_multiplier = 2;
               m.norm = NormKind::layer;
             }),
      "layers as GPT-NeoX's, Phi's or Cohere's, with multipliers of embeddings, scores or what they add");
  EXPECT_EQ(reason("phi3", [](auto& m) { m.output_multiplier = 2; }),
            "multipliers with heads of which a part turns, or layers of which none");
}

// Pairs that turn stand otherwise, gains stand around another place: the directory must mean the same.
TEST(HubNorms, models_in_our_own_ways_of_storing_become_theirs) {
  for (const char* name : {"olmo2", "olmo3", "exaone4", "gemma3_text", "glm4", "granite"}) {
    const TemporaryDirectory folder;
    ModelConfig config = model_of(name);
    config.rotary.interleaved = !config.rotary.interleaved;
    config.norm_centered_gain = !config.norm_centered_gain;
    const auto ours =
        write_with_gains(config, folder / "out", [](std::size_t i) { return 0.5F + 0.1F * float(i % 5); });
    const HubConfig again = read_hub_config(folder / "out");
    EXPECT_EQ(again.type, name);
    SoloCommunicator solo;
    ReadModel copy(again.model, solo);
    load_theirs(HubWeights(folder / "out", again), copy.named(), solo);
    EXPECT_LT(difference(copy.logits(written_prompt), ours), 1e-5) << name;
  }
}
