// Llama 4: experts that read weighed rows, norms without gains, layers that see chunks and layers that do not
// turn.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"

using namespace weft;
using namespace weft::testing;
using nlohmann::json;

namespace {

const char* const llama4 = "llama4_text";
const std::string either = "chunks, queries that grow, norms without gains or weighed rows, with ";

std::string reason_where(const std::function<void(ModelConfig&)>& change) {
  return weft::testing::reason(llama4, change);
}

}  // namespace

TEST(HubLlama4, is_read_and_kept) {
  const ModelConfig model = model_of(llama4);
  EXPECT_TRUE(model.qk_norm_plain && model.qk_norm_turning && model.rotary.interleaved);
  EXPECT_TRUE(model.experts.weigh_input);
  EXPECT_EQ(model.experts.router.score, RouterScore::sigmoid);
  EXPECT_EQ(model.experts.layers, (std::vector{0, 1}));
  EXPECT_EQ(model.rotary.skip_layers, (std::vector{0, 1}));
  EXPECT_EQ(model.ffn_hidden, 20);
  EXPECT_EQ(model.experts.ffn_hidden, 24);
  EXPECT_EQ(model.experts.shared_hidden, 24);
  expect_kept(model, llama4);
  expect_kept(model_with(llama4, {{"use_qk_norm", false}}), llama4);
  expect_kept(model_with(llama4, {{"no_rope_layers", {1, 1}}}), llama4);
  expect_kept(model_with(llama4, {{"moe_layers", json::array()}}), llama4);
}

TEST(HubLlama4, has_settings_that_go_without_saying) {
  const ModelConfig model =
      model_with(llama4, {{"no_rope_layers", json::array()}, {"num_hidden_layers", 4}},
                 {"no_rope_layer_interval", "moe_layers", "interleave_moe_layer_step", "use_qk_norm",
                  "layer_types", "num_experts_per_tok", "rope_parameters", "head_dim"});
  EXPECT_EQ(model.rotary.skip_layers, (std::vector{0, 0, 0, 1}));
  EXPECT_EQ(model.experts.layers, (std::vector{1, 1, 1, 1}));
  EXPECT_TRUE(model.qk_norm_plain);
  EXPECT_EQ(model.rotary.base, 500000);
  EXPECT_EQ(model.channels, 128);
  EXPECT_EQ(model_with(llama4, {{"interleave_moe_layer_step", 2}}, {"moe_layers"}).experts.layers,
            (std::vector{0, 1}));
}

TEST(HubLlama4, sees_chunks_where_it_turns_and_grows_where_it_does_not) {
  const ModelConfig usual = model_with(
      llama4, json::object(),
      {"layer_types", "attention_chunk_size", "attn_temperature_tuning", "floor_scale", "attn_scale"});
  EXPECT_EQ(usual.scores.chunk, 8192);
  EXPECT_EQ(usual.scores.growth_every, 8192);
  EXPECT_EQ(usual.scores.growth, 0.1);
  EXPECT_EQ(usual.window_layers, (std::vector{1, 0}));
  const ModelConfig small = model_of("llama4_long");
  EXPECT_EQ(small.scores.chunk, 5);
  EXPECT_EQ(small.scores.growth_every, 4);
  EXPECT_EQ(small.scores.growth, 0.5);
  expect_kept(small, llama4);
  const json other = json::array({"full_attention", "chunked_attention"});
  expect_kept(model_with("llama4_long", {{"layer_types", other}}), llama4);
  EXPECT_EQ(model_with("llama4_long", {{"layer_types", other}}).window_layers, (std::vector{0, 1}));
}

TEST(HubLlama4, sees_all_and_grows_nowhere_where_that_is_said) {
  const ModelConfig still = model_with("llama4_long", {{"attn_temperature_tuning", false}});
  EXPECT_EQ(still.scores.growth_every, 0);
  expect_kept(still, llama4);
  const ModelConfig whole = model_with("llama4_long", {{"attention_chunk_size", nullptr}}, {"layer_types"});
  EXPECT_EQ(whole.scores.chunk, 0);
  EXPECT_TRUE(whole.window_layers.empty());
  expect_kept(whole, llama4);
  // Where all layers turn, nothing grows.
  EXPECT_EQ(model_with("llama4_long", {{"no_rope_layers", {1, 1}}}).scores.growth_every, 0);
}

TEST(HubLlama4, is_read_as_the_text_of_a_model_that_sees_pictures) {
  const json whole = {{"model_type", "llama4"}, {"text_config", settings_of(llama4)}, {"vision_config", {}}};
  EXPECT_EQ(exchange::hub_config_from_json(whole.dump(), "c").type, llama4);
}

TEST(HubLlama4, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said(llama4, {{"num_experts_per_tok", 2}}),
            "c: \"num_experts_per_tok\" is 2, weft can only compute 1, chosen by sigmoids");
  EXPECT_EQ(said(llama4, {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft can only compute false");
  EXPECT_EQ(
      said(llama4, {{"layer_types", {"sliding_attention", "full_attention"}}}),
      "c: \"layer_types\" is [\"sliding_attention\",\"full_attention\"], weft knows chunked_attention and "
      "full_attention");
  EXPECT_EQ(said(llama4, {{"layer_types", {"chunked_attention"}}}),
            "c: \"layer_types\" is [\"chunked_attention\"], expected a list of 2 words");
  EXPECT_EQ(
      said(llama4, {{"attention_chunk_size", nullptr}}),
      "c: \"layer_types\" is [\"chunked_attention\",\"full_attention\"], but \"attention_chunk_size\" is "
      "null");
  EXPECT_EQ(said(llama4, {{"floor_scale", 0}}),
            "c: \"floor_scale\" is 0, expected a whole number from 1 to 2147483647");
  EXPECT_EQ(said(llama4, {{"attn_scale", -1.0}}), "c: \"attn_scale\" is -1.0, expected a number above 0");
  EXPECT_EQ(said(llama4, {{"moe_layers", {2}}}),
            "c: \"moe_layers\" is [2], expected a list of layers from 0 to 1");
}

TEST(HubLlama4, an_expert_too_few_is_named) {
  EXPECT_EQ(said_without(llama4, "model.layers.1.feed_forward.experts.gate_up_proj"),
            "lacks model.layers.1.feed_forward.experts.gate_up_proj, which layers.1.experts.0.up.weight is "
            "made of");
  EXPECT_EQ(said_without(llama4, "model.layers.0.feed_forward.up_proj.weight"),
            "lacks model.layers.0.feed_forward.up_proj.weight, which layers.0.mlp.up.weight is made of");
}

TEST(HubLlama4, what_no_family_has_is_named) {
  EXPECT_EQ(reason_where([](auto& m) { m.positions = Positions::learned; }),
            "chunks, queries that grow, norms without gains or weighed rows, without rotary positions");
  EXPECT_EQ(reason_where([](auto& m) { m.norm_places = NormPlaces::around; }),
            either + "other norms or MLPs than Llama's");
  EXPECT_EQ(reason_where([](auto& m) { m.window = 4; }), either + "other attention than Llama 4's");
  EXPECT_EQ(reason_where([](auto& m) { m.rotary.percent = 0.5; }), either + "other attention than Llama 4's");
  EXPECT_EQ(reason_where([](auto& m) { m.scores.cap = 4; }), either + "other attention than Llama 4's");
  EXPECT_EQ(reason_where([](auto& m) { m.qkv_bias = true; }), either + "biases or multipliers");
  EXPECT_EQ(reason_where([](auto& m) { m.residual_multiplier = 2; }), either + "biases or multipliers");
  EXPECT_EQ(reason_where([](auto& m) { m.qk_norm_plain = false; }),
            "weighed rows, with norms that have gains");
  EXPECT_EQ(reason_where([](auto& m) { m.qk_norm_turning = false; }),
            "norms without gains in layers without rotary positions");
  EXPECT_EQ(reason_where([](auto& m) { m.experts.weigh_input = false; }),
            "chunks, queries that grow or norms without gains, with weights of what experts give");
  EXPECT_EQ(reason_where([](auto& m) { m.experts.router.chosen = 2; }),
            "weighed rows of others than one expert a token, chosen by sigmoids");
  EXPECT_EQ(reason_where([](auto& m) { m.experts.router.scaling = 2; }),
            "weighed rows, with an expert bias, groups or scaled weights");
  EXPECT_EQ(reason_where([](auto& m) { m.experts.shared_hidden = 12; }),
            "weighed rows, without a shared expert as wide as the others and without a gate");
}
