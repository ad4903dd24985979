// State spaces alone, and beside attention in layers of two things: Mamba 2, Bamba and Granite 4.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;

TEST(HubStates, a_layer_of_theirs_is_two_of_ours) {
  EXPECT_EQ(model_of("mamba2").hybrid.layers, "MM");
  EXPECT_EQ(model_of("bamba").hybrid.layers, "M-*-M-");
  EXPECT_EQ(model_of("granitemoehybrid").hybrid.layers, "ME*EME");
  EXPECT_EQ(model_of("granitemoehybrid_dense").hybrid.layers, "M-M-*-");
  for (const char* name : {"mamba2", "bamba", "granitemoehybrid"}) expect_kept(model_of(name), name);
  expect_kept(model_of("granitemoehybrid_dense"), "granitemoehybrid");
  expect_kept(model_with("mamba2", {{"tie_word_embeddings", false}}), "mamba2");
  // Granite 4 without state spaces is called so, too.
  const json all = json::array({"attention", "attention", "attention"});
  expect_kept(model_with("granitemoehybrid_dense", {{"layer_types", all}}), "granitemoehybrid");
  expect_kept(model_with("bamba", {{"attn_layer_indices", {0, 1, 2}}}), "bamba");
  expect_kept(model_with("bamba", {{"tie_word_embeddings", true}}), "bamba");
  EXPECT_EQ(said_without("granitemoehybrid", "model.layers.1.block_sparse_moe.input_linear.weight"),
            "lacks model.layers.1.block_sparse_moe.input_linear.weight, which "
            "layers.3.experts.0.up.weight is made of");
}

TEST(HubStates, settings_go_without_saying) {
  const ModelConfig plain = model_with(
      "mamba2", {{"num_heads", 4}, {"hidden_size", 128}},
      {"expand", "head_dim", "state_size", "conv_kernel", "layer_norm_epsilon", "time_step_limit"});
  EXPECT_EQ(plain.state.head_channels, 64);
  EXPECT_EQ(plain.state.channels, 128);
  EXPECT_EQ(plain.state.taps, 4);
  const ModelConfig bamba = model_with("bamba", {{"mamba_d_head", "auto"}},
                                       {"attn_layer_indices", "rope_parameters", "mamba_n_groups"});
  EXPECT_EQ(bamba.hybrid.layers, "M-M-M-");
  EXPECT_EQ(bamba.state.head_channels, 8);
  EXPECT_EQ(bamba.state.groups, 1);
  EXPECT_EQ(bamba.rotary.percent, 0.5);
  const ModelConfig granite =
      model_with("granitemoehybrid", {{"position_embedding_type", "nope"}}, {"layer_types"});
  EXPECT_EQ(granite.hybrid.layers, "MEMEME");
  EXPECT_EQ(granite.positions, Positions::none);
}

TEST(HubStates, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("mamba2", {{"use_bias", true}}), "c: \"use_bias\" is true, weft can only compute false");
  EXPECT_EQ(said("mamba2", {{"use_conv_bias", false}}),
            "c: \"use_conv_bias\" is false, weft can only compute true");
  EXPECT_EQ(said("mamba2", {{"head_dim", 4}}),
            "c: \"head_dim\" is 4, expected 4 heads to be 32 channels wide together");
  EXPECT_EQ(said("bamba", {{"time_step_limit", {0.01, 1.0}}}),
            "c: \"time_step_limit\" is [0.01,1.0], weft can only compute times that have no limit, from 0 to "
            "Infinity");
  EXPECT_EQ(said("bamba", {{"attn_layer_indices", {3}}}),
            "c: \"attn_layer_indices\" is [3], expected a list of layers");
  EXPECT_EQ(said("bamba", {{"attn_layer_indices", 1}}),
            "c: \"attn_layer_indices\" is 1, expected a list of layers");
  EXPECT_EQ(said("granitemoehybrid", {{"layer_types", {"mamba"}}}),
            "c: \"layer_types\" is [\"mamba\"], expected 3 words, linear_attention or full_attention");
  EXPECT_EQ(said("granitemoehybrid", {{"position_embedding_type", "alibi"}}),
            "c: \"position_embedding_type\" is \"alibi\", weft knows rope and nope");
  EXPECT_EQ(said("granitemoehybrid", {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft can only compute false");
}

TEST(HubStates, what_no_family_has_is_named) {
  EXPECT_EQ(reason("bamba", [](auto& m) { m.norm = NormKind::layer; }),
            "state spaces beside gated MLPs, with a layer norm");
  EXPECT_EQ(reason("bamba", [](auto& m) { m.state.norm_epsilon = 0.1; }),
            "state spaces whose norms have another epsilon than the others");
  EXPECT_EQ(reason("bamba", [](auto& m) { m.state.head_channels = 5; }),
            "state spaces whose heads are together no multiple as wide as the model");
  EXPECT_EQ(reason("bamba", [](auto& m) { m.qk_norm = true; }),
            "state spaces beside gated MLPs, with other attention than Llama's");
  EXPECT_EQ(reason("bamba", [](auto& m) { m.norm_places = NormPlaces::around; }),
            "layers of one thing each, with norms of what they give");
  EXPECT_EQ(reason("bamba", [](auto& m) { m.channels = 8; }),
            "state spaces beside gated MLPs, with heads that are not hidden / heads wide");
  EXPECT_EQ(reason("bamba", [](auto& m) { m.positions = Positions::learned; }),
            "state spaces beside gated MLPs, with learned positions");
  EXPECT_EQ(reason("granitemoehybrid_dense", [](auto& m) { m.rotary.percent = 0.5; }),
            "state spaces beside gated MLPs, with heads of which another part turns than half");
  EXPECT_EQ(reason("granitemoehybrid", [](auto& m) { m.experts.router.softmax_first = true; }),
            "state spaces beside experts whose weights are no softmax over the chosen");
  EXPECT_EQ(reason("granitemoehybrid", [](auto& m) { m.experts.shared_hidden = 0; }),
            "state spaces beside experts, without a shared one or with another gate");
  EXPECT_EQ(reason("mamba2", [](auto& m) { m.residual_multiplier = 0.5; }),
            "state spaces alone, with multipliers");
  EXPECT_EQ(reason("mamba2",
                   [](auto& m) {
                     m.ahead.depths = 1;
                     m.hybrid.ahead = "M";
                   }),
            "state spaces, with further tokens and a gated MLP or a tied output");
}
