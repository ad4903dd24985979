// Attention and MLPs beside each other, layer norms without biases, biases of logits: GPT-NeoX, GPT-J, Phi,
// Falcon and Cohere.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "tests/support/placed.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

TEST(HubBeside, sublayers_stand_as_a_type_has_them) {
  using enum ParallelSublayers;
  for (const auto& [name, type, how] :
       {std::tuple{"gpt_neox", "gpt_neox", own_norms}, std::tuple{"gpt_neox_serial", "gpt_neox", none},
        std::tuple{"gptj", "gptj", one_norm}, std::tuple{"phi", "phi", one_norm},
        std::tuple{"falcon", "falcon", one_norm}, std::tuple{"falcon_grouped", "falcon", own_norms},
        std::tuple{"cohere", "cohere", one_norm}}) {
    EXPECT_EQ(model_of(name).parallel_sublayers, how) << name;
    expect_kept(model_of(name), type);
  }
  // What a Falcon of single keys can say, GPT-NeoX says more plainly.
  EXPECT_EQ(type_for(model_of("falcon_serial")), "gpt_neox");
  EXPECT_EQ(type_for(model_with("falcon_serial", {{"bias", false}})), "falcon");
  expect_kept(model_with("falcon_grouped", {{"num_ln_in_parallel_attn", 1}}), "falcon");
  expect_kept(model_with("falcon_serial", {{"multi_query", true}}), "falcon");
  expect_kept(model_with("falcon", {{"multi_query", false}}), "falcon");
  expect_kept(model_with("phi", {{"qk_layernorm", false}, {"tie_word_embeddings", true}}), "phi");
}

TEST(HubBeside, settings_go_without_saying) {
  const ModelConfig neox =
      model_with("gpt_neox", {{"hidden_size", 64}}, {"rope_parameters", "use_parallel_residual"});
  EXPECT_EQ(neox.rotary.percent, 0.25);
  EXPECT_EQ(neox.rotary.base, 10000);
  EXPECT_EQ(neox.parallel_sublayers, ParallelSublayers::own_norms);
  EXPECT_FALSE(neox.tied_output);
  const ModelConfig older =
      model_with("gpt_neox", {{"rotary_pct", 0.5}, {"rotary_emb_base", 700}}, {"rope_parameters"});
  EXPECT_EQ(older.rotary.percent, 0.5);
  EXPECT_EQ(older.rotary.base, 700);
  EXPECT_EQ(model_with("phi", json::object(), {"rope_parameters"}).rotary.percent, 0.5);
  const ModelConfig cohere =
      model_with("cohere", json::object(), {"logit_scale", "num_key_value_heads", "rope_parameters"});
  EXPECT_EQ(cohere.output_multiplier, 0.0625);
  EXPECT_EQ(cohere.groups, 4);
  EXPECT_EQ(cohere.rotary.base, 500000);
  EXPECT_TRUE(cohere.tied_output);
  const ModelConfig falcon =
      model_with("falcon", json::object(), {"ffn_hidden_size", "multi_query", "parallel_attn"});
  EXPECT_EQ(falcon.ffn_hidden, 64);
  EXPECT_EQ(falcon.groups, 1);
  EXPECT_EQ(model_with("falcon_grouped", json::object(), {"num_ln_in_parallel_attn"}).parallel_sublayers,
            ParallelSublayers::own_norms);
}

TEST(HubBeside, a_number_of_channels_turns) {
  ModelConfig m = model_of("gptj");
  EXPECT_EQ(m.rotary.percent, 0.5);
  for (std::int64_t channels = 2; channels <= 128; channels += 2) {
    m = model_with("gptj", {{"n_embd", 4 * channels}, {"rotary_dim", 2}});
    EXPECT_EQ(turned_channels(m), 2) << channels;
  }
  EXPECT_EQ(said("gptj", {{"rotary_dim", 8}}),
            "c: \"rotary_dim\" is 8, expected an even number up to the 4 channels of a head");
}

TEST(HubBeside, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("gpt_neox", {{"attention_bias", false}}),
            "c: \"attention_bias\" is false, weft can only compute true");
  EXPECT_EQ(said("cohere2", {{"use_qk_norm", true}}),
            "c: \"use_qk_norm\" is true, weft can only compute false");
  EXPECT_EQ(said("falcon", {{"multi_query", false}, {"num_kv_heads", 2}}),
            "c: \"num_kv_heads\" is 2, weft can only compute as many as heads without "
            "new_decoder_architecture");
  EXPECT_EQ(said("falcon", {{"num_ln_in_parallel_attn", 2}}),
            "c: \"num_ln_in_parallel_attn\" is 2, weft can only compute 1 without new_decoder_architecture");
  EXPECT_EQ(said("falcon_grouped", {{"parallel_attn", false}}),
            "c: \"parallel_attn\" is false, weft can only compute true with new_decoder_architecture");
  EXPECT_EQ(said("gptj", {{"scale_attn_weights", false}}),
            "c: \"scale_attn_weights\" is false, weft can only compute true");
}

TEST(HubBeside, what_no_family_has_is_named) {
  const std::string layers = "layers as GPT-NeoX's, Phi's or Cohere's, ";
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.positions = Positions::learned; }),
            layers + "without rotary positions");
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.norm = NormKind::rms; }), layers + "with RMS norms");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.experts.count = 2; }),
            layers + "of other kinds than attention and an MLP");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.sink = Sink::learned; }),
            layers + "of other kinds than attention and an MLP");
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.window = 4; }),
            layers + "with a window or without rotary positions in some");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.residual_multiplier = 0.5; }),
            layers + "with multipliers of embeddings, scores or what they add");
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.qk_norm = true; }),
            layers + "with norms of queries and keys that Phi has not");
  EXPECT_EQ(reason("cohere",
                   [](auto& m) {
                     m.parallel_sublayers = ParallelSublayers::none;
                     m.norm_places = NormPlaces::around;
                   }),
            layers + "with norms of what they give");
}

TEST(HubBeside, what_one_type_lacks_is_named) {
  const auto serial = [](auto& m) { m.parallel_sublayers = ParallelSublayers::own_norms; };
  EXPECT_EQ(reason("phi", serial), "biases of logits, without one norm for attention and MLP");
  EXPECT_EQ(reason("phi", [](auto& m) { m.qkv_bias = false; }), "biases of logits without all others");
  EXPECT_EQ(reason("cohere", serial), "layer norms without biases, not one for attention and MLP");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.gated = false; }),
            "layer norms without biases, with an MLP that is not gated");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.linear_bias = true; }),
            "layer norms without biases, with others");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.rotary.percent = 0.5; }),
            "layer norms without biases, with heads of which a part turns");
  EXPECT_EQ(reason("cohere", [](auto& m) { m.norm_bias = true; }),
            "layer norms that have biases, with an output multiplier");
  EXPECT_EQ(reason("phi", [](auto& m) { m.gated = true; }), "layer norms that have biases, with a gated MLP");
  EXPECT_EQ(reason("falcon", [](auto& m) { m.channels = 8; }),
            "layer norms that have biases, with heads that are not hidden / heads wide");
  EXPECT_EQ(reason("falcon", [](auto& m) { m.output_multiplier = 2; }),
            "layer norms that have biases, with an output multiplier");
  EXPECT_EQ(reason("falcon", [](auto& m) { m.qkv_bias = true; }),
            "layers as Falcon's, with biases in some places");
  EXPECT_EQ(reason("falcon", [](auto& m) { m.rotary.percent = 0.5; }),
            "layers as Falcon's, with heads of which a part turns");
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.project_bias = false; }),
            "biases of MLPs without one of the projection, and without biases of logits");
  EXPECT_EQ(reason("gpt_neox", [](auto& m) { m.rotary.percent = 0.9; }),
            "rotary positions on an odd number of channels");
  EXPECT_EQ(reason("gptj", [](auto& m) { m.qkv_bias = true; }),
            "biases of logits and of no projection, with others than an MLP's");
  EXPECT_EQ(reason("gptj", [](auto& m) { m.groups = 2; }),
            "biases of logits and of no projection, with grouped heads");
  EXPECT_EQ(reason("gptj", [](auto& m) { m.rotary.base = 500; }),
            "biases of logits and of no projection, with other angles than GPT-J's");
}

TEST(HubBeside, tensors_are_called_as_there) {
  EXPECT_EQ(said_without("gpt_neox", "embed_out.weight"),
            "lacks embed_out.weight, which output.words is made of");
  EXPECT_EQ(said_without("falcon_serial", "transformer.h.0.post_attention_layernorm.weight"),
            "lacks transformer.h.0.post_attention_layernorm.weight, which layers.0.mlp_norm.gain is made of");
  EXPECT_EQ(said_without("phi", "lm_head.bias"), "lacks lm_head.bias, which output.bias is made of");
  EXPECT_EQ(said_without("gpt_neox", "", "gpt_neox.layers.0.attention.masked_bias"), "");
}

// Neighbours that turn in models of types that turn halves, and the other way round: the same logits.
TEST(HubBeside, models_in_our_own_ways_of_storing_become_theirs) {
  for (const auto& [config, type] :
       {std::pair{tiny_neox(), "gpt_neox"}, std::pair{tiny_command(), "cohere"}}) {
    const TemporaryDirectory folder;
    ModelConfig turned = config;
    turned.rotary.interleaved = !config.rotary.interleaved;
    turned.norm_centered_gain = true;
    const auto ours =
        write_with_gains(turned, folder / "out", [](std::size_t i) { return 0.1F * float(i % 5); });
    const HubConfig read = read_hub_config(folder / "out");
    EXPECT_EQ(read.type, type);
    SoloCommunicator solo;
    ReadModel model(read.model, solo);
    load_theirs(HubWeights(folder / "out", read), model.named(), solo);
    EXPECT_LT(difference(model.logits(written_prompt, {}), ours), 1e-5) << type;
  }
}
