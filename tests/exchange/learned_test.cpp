// Places that have a table, and scores that fall with distances: GPT-BigCode, GPT-Neo, OPT, BLOOM, MPT; and
// StableLM's layer norms.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;

TEST(HubLearned, types_are_kept_or_become_plainer_ones) {
  expect_kept(model_of("gpt_bigcode"), "gpt_bigcode");
  expect_kept(model_of("gpt_neo"), "gpt_neo");
  expect_kept(model_of("opt_unbiased"), "opt");
  // Where every head has its own key, or an OPT has all biases, GPT-2 says it.
  expect_kept(model_of("gpt_bigcode_heads"), "gpt2");
  expect_kept(model_of("opt"), "gpt2");
  EXPECT_EQ(model_of("opt").activation, Activation::relu);
  EXPECT_EQ(model_of("opt").max_positions, 24);
}

TEST(HubLearned, patterns_say_which_layers_look_through_a_window) {
  const ModelConfig neo = model_of("gpt_neo");
  EXPECT_EQ(neo.window_layers, (std::vector{0, 1, 0, 1}));
  EXPECT_EQ(neo.window, 5);
  EXPECT_EQ(neo.softmax_scale, 1);
  const json global = json::parse(R"([[["global"], 4]])");
  const ModelConfig whole = model_with("gpt_neo", {{"attention_types", global}});
  EXPECT_EQ(whole.window, 0);
  expect_kept(whole, "gpt_neo");
  const ModelConfig two =
      model_with("gpt_neo", {{"attention_types", json::parse(R"([[["local"], 1], [["global"], 3]])")}});
  EXPECT_EQ(two.window_layers, (std::vector{1, 0, 0, 0}));
}

TEST(HubLearned, patterns_that_are_none_are_refused_by_name) {
  const std::string expected =
      ", expected lists of global and local, and how often each comes: [[[\"global\", \"local\"], 12]]";
  const std::string name = "c: \"attention_types\" is ";
  for (const char* bad :
       {R"("all")", R"([["global",2]])", R"([[["global"],-2]])", R"([[["near"],4]])", R"([[["global"]]])"})
    EXPECT_EQ(said("gpt_neo", {{"attention_types", json::parse(bad)}}), name + bad + expected);
  EXPECT_EQ(said("gpt_neo", {{"attention_types", json::parse(R"([[["global"],3]])")}}),
            name + R"([[["global"],3]], expected 4 layers)");
}

TEST(HubLearned, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("gpt_bigcode", {{"scale_attn_weights", false}}),
            "c: \"scale_attn_weights\" is false, weft can only compute true");
  EXPECT_EQ(said("opt", {{"do_layer_norm_before", false}}),
            "c: \"do_layer_norm_before\" is false, weft can only compute true");
  EXPECT_EQ(said("opt", {{"word_embed_proj_dim", 8}}),
            "c: \"word_embed_proj_dim\" is 8, weft can only compute 16");
  EXPECT_EQ(said("opt", {{"layer_norm_elementwise_affine", false}}),
            "c: \"layer_norm_elementwise_affine\" is false, weft can only compute true");
}

TEST(HubLearned, what_no_family_has_is_named) {
  EXPECT_EQ(reason("gpt_neo", [](auto& m) { m.qkv_bias = true; }),
            "learned positions with a window or scores of another scale, with biases in other places than "
            "GPT-Neo's");
  EXPECT_EQ(reason("gpt_neo", [](auto& m) { m.groups = 2; }),
            "learned positions with a window, with grouped heads");
  EXPECT_EQ(reason("gpt_neo", [](auto& m) { m.softmax_scale = 0.5; }),
            "learned positions with a window, with scores that are scaled");
  EXPECT_EQ(reason("opt_unbiased", [](auto& m) { m.groups = 2; }),
            "learned positions without biases, with grouped heads");
  EXPECT_EQ(reason("opt_unbiased", [](auto& m) { m.norm_epsilon = 1e-6; }),
            "learned positions without biases, with another epsilon than 1e-5");
  EXPECT_EQ(reason("opt_unbiased", [](auto& m) { m.qkv_bias = true; }),
            "learned positions with biases of queries, keys and values alone");
  EXPECT_EQ(reason("gpt_bigcode", [](auto& m) { m.groups = 2; }), "learned positions with grouped heads");
}

TEST(HubLearned, places_behind_two_rows_are_read) {
  EXPECT_EQ(said_without("opt", "model.decoder.embed_positions.weight"),
            "lacks model.decoder.embed_positions.weight, which embedding.positions is made of");
  EXPECT_EQ(said_without("gpt_neo", "transformer.h.1.attn.attention.k_proj.weight"),
            "lacks transformer.h.1.attn.attention.k_proj.weight, which layers.1.attention.qkv.weight is made "
            "of");
}

TEST(HubFalling, types_are_kept) {
  for (const char* name : {"bloom", "mpt"}) {
    EXPECT_EQ(model_of(name).positions, Positions::alibi) << name;
    expect_kept(model_of(name), name);
  }
  EXPECT_TRUE(model_of("bloom").embedding_norm);
  EXPECT_TRUE(model_of("falcon_falling").alibi.scaled);
  expect_kept(model_of("falcon_falling"), "falcon");
  expect_kept(model_with("falcon_falling", {{"multi_query", true}, {"parallel_attn", true}}), "falcon");
}

TEST(HubFalling, settings_are_said_in_several_words) {
  const ModelConfig older = model_with(
      "bloom", {{"n_embed", 16}, {"num_attention_heads", 4}, {"seq_length", 40}}, {"hidden_size", "n_head"});
  EXPECT_EQ(older.hidden, 16);
  EXPECT_EQ(older.heads, 4);
  EXPECT_EQ(older.sequence, 40);
  EXPECT_EQ(model_with("bloom", json::object(), {"seq_length"}).sequence, 2048);
  const ModelConfig mpt =
      model_with("mpt", {{"attn_config", {{"alibi_bias_max", 6}, {"attn_pdrop", 0.25}}}}, {"max_seq_len"});
  EXPECT_EQ(mpt.alibi.power, 6);
  EXPECT_EQ(mpt.hidden_dropout, 0.25);
  EXPECT_EQ(mpt.sequence, 2048);
  expect_kept(mpt, "mpt");
}

TEST(HubFalling, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("bloom", {{"apply_residual_connection_post_layernorm", true}}),
            "c: \"apply_residual_connection_post_layernorm\" is true, weft can only compute false");
  EXPECT_EQ(said("mpt", {{"no_bias", false}}), "c: \"no_bias\" is false, weft can only compute true");
  EXPECT_EQ(said("mpt", {{"expansion_ratio", 2}}), "c: \"expansion_ratio\" is 2, weft can only compute 4");
  EXPECT_EQ(said("mpt", {{"attn_config", 3}}), "c: \"attn_config\" is 3, expected an object");
  EXPECT_EQ(said("mpt", {{"attn_config", {{"clip_qkv", 0.5}}}}),
            "c: attn_config: \"clip_qkv\" is 0.5, weft can only compute 1 and more");
  EXPECT_EQ(said("mpt", {{"attn_config", {{"softmax_scale", 0.5}}}}),
            "c: attn_config: \"softmax_scale\" is 0.5, which weft cannot compute");
  EXPECT_EQ(said("mpt", {{"attn_config", {{"alibi", false}}}}),
            "c: attn_config: \"alibi\" is false, weft can only compute true");
  EXPECT_EQ(said("mpt", {{"attn_config", {{"rope", true}}}}),
            "c: attn_config: \"rope\" is a setting that weft does not know");
}

TEST(HubFalling, what_no_family_has_is_named) {
  const std::string falls = "scores that fall with distances, ";
  EXPECT_EQ(reason("bloom", [](auto& m) { m.gated = true; }), falls + "with a gated MLP");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.groups = 2; }), falls + "with grouped heads");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.ffn_hidden = 40; }),
            falls + "with MLPs that are not four times as wide");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.parallel_sublayers = ParallelSublayers::one_norm; }),
            falls + "with attention and MLPs beside each other");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.channels = 8; }),
            falls + "with heads that are not hidden / heads wide");
  EXPECT_EQ(reason("mpt", [](auto& m) { m.output_multiplier = 2; }), falls + "with an output multiplier");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.qkv_bias = false; }), "norms of embeddings, without biases");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.activation = Activation::relu; }),
            "norms of embeddings, with another activation than gelu's tanh form");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.alibi.power = 4; }),
            "norms of embeddings, with other slopes than BLOOM's");
  EXPECT_EQ(reason("bloom", [](auto& m) { m.embedding_norm = false; }),
            falls + "with biases and without norms of embeddings");
  EXPECT_EQ(reason("mpt", [](auto& m) { m.activation = Activation::relu; }),
            falls + "without biases, with another activation than gelu");
  EXPECT_EQ(reason("mpt", [](auto& m) { m.alibi.power = 4.5; }),
            falls + "by a power that is no whole number");
  EXPECT_EQ(reason("mpt", [](auto& m) { m.hidden_dropout = 0.5; }),
            falls + "with another dropout of scores than of what is added");
  EXPECT_EQ(reason("falcon_falling", [](auto& m) { m.alibi.power = 4; }),
            "scores that fall with distances as they are scaled, in another way than Falcon's");
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.embedding_norm = true; }),
            "norms of embeddings, without scores that fall with distances");
}

TEST(HubStableLm, is_kept_with_all_that_goes_without_saying) {
  expect_kept(model_of("stablelm"), "stablelm");
  expect_kept(model_of("stablelm_beside"), "stablelm");
  const ModelConfig quarter =
      model_with("stablelm", {{"hidden_size", 64}}, {"rope_parameters", "use_qkv_bias", "hidden_act"});
  EXPECT_EQ(quarter.rotary.percent, 0.25);
  EXPECT_FALSE(quarter.qkv_bias);
  EXPECT_EQ(quarter.activation, Activation::silu);
  EXPECT_EQ(model_of("stablelm_beside").parallel_sublayers, ParallelSublayers::one_norm);
  EXPECT_EQ(reason("stablelm", [](auto& m) { m.linear_bias = true; }),
            "layer norms that have biases and a gated MLP that has some");
  EXPECT_EQ(reason("stablelm", [](auto& m) { m.channels = 8; }),
            "layer norms that have biases, with heads that are not hidden / heads wide");
  EXPECT_EQ(reason("stablelm", [](auto& m) { m.parallel_sublayers = ParallelSublayers::own_norms; }),
            "layer norms that have biases and a gated MLP, with norms of their own beside each other");
}
