// Norms of queries and keys with gains of each head's own, or behind turning; norms with nothing to learn,
// limits, biases of attention alone, and growth of scores that is said: Command-R+, StableLM 2 12B, Hunyuan,
// OLMo 1, MPT, Granite's mixtures, Qwen 3.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "weft/model/rotary.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

TEST(HubDetails, types_are_kept) {
  for (const auto& [name, type] :
       {std::pair{"cohere_each", "cohere"}, std::pair{"cohere2_biased", "cohere2"},
        std::pair{"stablelm_each", "stablelm"}, std::pair{"olmo", "olmo"}, std::pair{"mpt_limited", "mpt"},
        std::pair{"llama_stretched", "llama"}, std::pair{"qwen3_biased", "qwen3"},
        std::pair{"qwen3_moe_biased", "qwen3_moe"}, std::pair{"qwen3_next_dense", "qwen3_5_text"},
        std::pair{"granitemoe", "granitemoe"}, std::pair{"granitemoeshared", "granitemoeshared"},
        std::pair{"hunyuan_v1_dense", "hunyuan_v1_dense"}, std::pair{"hunyuan_v1_moe", "hunyuan_v1_moe"}})
    expect_kept(model_of(name), type);
  for (const char* name : {"cohere_each", "stablelm_each"}) EXPECT_TRUE(model_of(name).qk_norm_each) << name;
  for (const char* name : {"olmo", "mpt_limited"}) EXPECT_EQ(model_of(name).qkv_limit, 1.25) << name;
  EXPECT_FALSE(model_of("olmo").norm_gain);
  EXPECT_EQ(model_of("olmo").norm_epsilon, 1e-5);
}

TEST(HubDetails, what_is_left_out_goes_without_saying) {
  const ModelConfig olmo =
      model_with("olmo", json::object(), {"num_key_value_heads", "attention_bias", "clip_qkv", "hidden_act"});
  EXPECT_EQ(olmo.groups, 4);
  EXPECT_EQ(olmo.qkv_limit, 0);
  EXPECT_FALSE(olmo.qkv_bias || olmo.linear_bias);
  expect_kept(olmo, "olmo");
  EXPECT_FALSE(model_with("cohere_each", json::object(), {"use_qk_norm"}).qk_norm);
  EXPECT_EQ(
      model_with("granitemoeshared", json::object(), {"shared_intermediate_size"}).experts.shared_hidden, 0);
  EXPECT_EQ(type_for(model_with("granitemoeshared", {{"shared_intermediate_size", 0}})), "granitemoe");
}

TEST(HubDetails, biases_of_attention_alone_are_those_of_all_its_products) {
  for (const char* name : {"cohere2_biased", "qwen3_biased", "qwen3_moe_biased", "llama_stretched", "olmo",
                           "granitemoeshared"}) {
    const ModelConfig model = model_of(name);
    EXPECT_TRUE(model.qkv_bias && model.linear_bias && model.project_bias && !model.mlp_bias) << name;
  }
  for (const char* name : {"llama3", "granite", "smollm3", "arcee", "cohere"})
    expect_kept(model_with(name, {{"attention_bias", true}, {"mlp_bias", false}}),
                name == std::string("llama3") ? "llama" : name);
}

// What scores grow by is one of two numbers here, whichever is above zero.
TEST(HubDetails, growth_of_scores_is_read_and_written) {
  const ModelConfig less = model_of("llama_stretched"), more = model_of("qwen3_biased");
  EXPECT_NEAR(growth_of_scores(less.rotary), 0.8, 1e-9);
  EXPECT_NEAR(growth_of_scores(more.rotary), 1.5, 1e-9);
  EXPECT_EQ(less.rotary.mscale, 0);
  EXPECT_EQ(more.rotary.mscale_all, 0);
  const json yarn{{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 8}};
  const auto with = [&](json said) {
    said.update(yarn);
    return model_with("llama_stretched", {{"rope_parameters", said}}).rotary;
  };
  EXPECT_EQ(with({{"mscale", 0.7}, {"mscale_all_dim", 1.3}}).mscale_all, 1.3);
  // Of two numbers one alone says nothing to transformers.
  for (const json& one : {json{{"mscale", 0.7}}, json{{"mscale_all_dim", 0.7}}, json{{"mscale", 0.0}}}) {
    EXPECT_EQ(with(one).mscale, 1);
    EXPECT_EQ(with(one).mscale_all, 0);
  }
}

TEST(HubDetails, growth_that_nothing_computes_is_refused_by_name) {
  const json yarn{{"rope_type", "yarn"},
                  {"factor", 1.0},
                  {"attention_factor", 1.5},
                  {"original_max_position_embeddings", 8}};
  EXPECT_EQ(said("llama_stretched", {{"rope_parameters", yarn}}),
            "c: rope scaling: \"attention_factor\" is 1.5, weft can only compute 1 with this factor");
  json latent = yarn;
  latent["factor"] = 4.0;
  EXPECT_EQ(said("deepseek_v3", {{"rope_parameters", latent}}),
            "c: rope scaling: \"attention_factor\" is 1.5, weft can only compute 1.13863 with this factor");
  latent.erase("attention_factor");
  latent["mscale_all_dim"] = 1.0;
  EXPECT_EQ(said("deepseek_v3", {{"rope_parameters", latent}}),
            "c: rope scaling: \"mscale\" is missing, expected a number beside mscale_all_dim");
}

TEST(HubDetails, qwens_without_experts_are_dense) {
  EXPECT_EQ(model_of("qwen3_next_dense").experts.count, 0);
  const ModelConfig dense = model_with("qwen3_moe", {{"num_experts", 0}}, {"num_local_experts"});
  EXPECT_EQ(dense.experts.count, 0);
  EXPECT_EQ(type_for(dense), "qwen3");
}

TEST(HubDetails, hunyuan_says_the_same_of_all_layers) {
  EXPECT_NEAR(model_of("hunyuan_v1_dense").rotary.base, 500 * std::pow(20.0, 8.0 / 6.0), 1e-6);
  const ModelConfig listed = model_with("hunyuan_v1_moe", {{"moe_topk", {3, 3}},
                                                           {"num_shared_expert", {1, 1}},
                                                           {"moe_intermediate_size", {24, 24}},
                                                           {"use_qk_norm", true}});
  EXPECT_EQ(listed.experts.router.chosen, 3);
  EXPECT_EQ(said("hunyuan_v1_moe", {{"moe_topk", {3, 2}}}),
            "c: \"moe_topk\" is [3,2], weft can only compute the same from 1 to 4 in all layers");
  EXPECT_EQ(said("hunyuan_v1_moe", {{"num_shared_expert", {2, 2}}}),
            "c: \"num_shared_expert\" is [2,2], weft can only compute 1");
  EXPECT_EQ(said("hunyuan_v1_moe", {{"moe_intermediate_size", 12}}),
            "c: \"moe_intermediate_size\" is 12, weft can only compute 24");
  EXPECT_EQ(said("hunyuan_v1_dense", {{"use_qk_norm", false}}),
            "c: \"use_qk_norm\" is false, weft can only compute true");
  EXPECT_EQ(said("hunyuan_v1_dense", {{"use_cla", true}}),
            "c: \"use_cla\" is true, weft can only compute false");
  const json dynamic{{"rope_type", "dynamic"}, {"factor", 2.0}};
  EXPECT_EQ(said("hunyuan_v1_dense", {{"rope_parameters", dynamic}}),
            "c: rope scaling: \"rope_type\" is \"dynamic\", weft knows default, linear, llama3 and yarn");
}

TEST(HubDetails, what_no_such_model_has_is_named) {
  const std::string each = "norms of queries and keys with gains of each head's own, in such a model";
  EXPECT_EQ(reason("qwen3", [](auto& m) { m.qk_norm_each = true; }), each);
  EXPECT_EQ(reason("phi", [](auto& m) { m.qk_norm_each = true; }), each);
  EXPECT_EQ(reason("cohere_each", [](auto& m) { m.qk_norm_each = false; }),
            "layers as GPT-NeoX's, Phi's or Cohere's, with norms of queries and keys that Phi has not");
  EXPECT_EQ(reason("llama2", [](auto& m) { m.qkv_limit = 8; }),
            "queries, keys and values that are limited, in such a model");
  const std::string alone = "biases of attention's products and none of MLPs, in such a model";
  EXPECT_EQ(reason("phi", [](auto& m) { m.mlp_bias = false; }), alone);
  EXPECT_EQ(reason("gpt2", [](auto& m) { m.mlp_bias = false; }), alone);
  EXPECT_EQ(reason("phi", [](auto& m) { m.qk_norm = m.qk_norm_turned = true; }),
            "norms of queries and keys behind turning, in such a model");
}

TEST(HubDetails, what_no_olmo_has_is_named) {
  const std::string bare = "norms without gains, ";
  EXPECT_EQ(reason("olmo", [](auto& m) { m.norm_epsilon = 1e-6; }), bare + "with another epsilon than 1e-5");
  EXPECT_EQ(reason("olmo", [](auto& m) { m.gated = false; }),
            bare + "with layers beside each other, or with an MLP that is not gated");
  EXPECT_EQ(reason("olmo", [](auto& m) { m.mlp_bias = true; }),
            bare + "with biases of MLPs or of no projection");
  EXPECT_EQ(reason("olmo", [](auto& m) { m.window = 4; }),
            bare + "with a window, or heads of which a part turns");
  EXPECT_EQ(reason("olmo", [](auto& m) { m.channels = 8; }),
            bare + "with heads that are not hidden / heads wide");
  EXPECT_EQ(reason("olmo", [](auto& m) { m.output_multiplier = 2; }), bare + "with an output multiplier");
  EXPECT_EQ(reason("mpt", [](auto& m) { m.norm_gain = false; }), bare + "without rotary positions");
}

TEST(HubDetails, what_no_hunyuan_has_is_named) {
  const std::string behind = "norms of queries and keys behind turning, ";
  EXPECT_EQ(reason("hunyuan_v1_dense", [](auto& m) { m.gated = false; }),
            behind + "with other positions, norms or MLPs than Llama's");
  EXPECT_EQ(reason("hunyuan_v1_dense", [](auto& m) { m.qk_norm_each = true; }),
            behind + "with other gains than one for all heads");
  EXPECT_EQ(reason("hunyuan_v1_dense", [](auto& m) { m.sink = Sink::learned; }),
            behind + "in layers of other kinds than attention and an MLP");
  EXPECT_EQ(reason("hunyuan_v1_dense", [](auto& m) { m.qkv_bias = true; }),
            behind + "with biases of MLPs or of no projection");
  EXPECT_EQ(reason("hunyuan_v1_dense", [](auto& m) { m.window = 4; }),
            behind + "with windows, multipliers, or heads or layers that do not turn");
  EXPECT_EQ(reason("hunyuan_v1_moe", [](auto& m) { m.experts.shared_hidden = 12; }),
            behind +
                "with experts that are not in all layers, beside one as wide as each, and weighed by a "
                "softmax over the chosen");
  EXPECT_EQ(
      reason("granitemoe", [](auto& m) { m.experts.router.softmax_first = true; }),
      "multipliers with experts that are not in all layers, or chosen otherwise than by softmax over the "
      "chosen");
}

// Pairs that turn stand otherwise, gains stand around another place: the directory must mean the same.
TEST(HubDetails, models_in_our_own_ways_of_storing_become_theirs) {
  for (const char* name : {"cohere_each", "stablelm_each", "hunyuan_v1_dense"}) {
    const TemporaryDirectory folder;
    ModelConfig config = model_of(name);
    config.rotary.interleaved = !config.rotary.interleaved;
    config.norm_centered_gain = !config.norm_centered_gain;
    const auto ours =
        write_with_gains(config, folder / "out", [](std::size_t i) { return 0.5F + 0.1F * float(i % 5); });
    const HubConfig again = read_hub_config(folder / "out");
    SoloCommunicator solo;
    ReadModel copy(again.model, solo);
    load_theirs(HubWeights(folder / "out", again), copy.named(), solo);
    EXPECT_LT(difference(copy.logits(written_prompt), ours), 1e-5) << name;
  }
}

TEST(HubDetails, tensors_that_are_missing_are_named) {
  EXPECT_EQ(
      said_without("stablelm_each", "model.layers.1.self_attn.k_layernorm.norms.1.weight"),
      "lacks model.layers.1.self_attn.k_layernorm.norms.1.weight, which layers.1.attention.k_norm.gain is "
      "made of");
  EXPECT_EQ(said_without("cohere_each", "model.layers.1.self_attn.q_norm.weight"),
            "lacks model.layers.1.self_attn.q_norm.weight, which layers.1.attention.q_norm.gain is made of");
  EXPECT_EQ(said_without("olmo", "", "model.norm.weight"),
            "holds model.norm.weight, which is no part of a olmo model of 2 layers");
}
