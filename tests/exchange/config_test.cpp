#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "weft/base/format.h"
#include "weft/model/gpt/hub.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;

namespace {

json plain_llama() {
  return {{"model_type", "llama"},        {"num_hidden_layers", 2}, {"hidden_size", 16},
          {"num_attention_heads", 4},     {"vocab_size", 37},       {"intermediate_size", 24},
          {"max_position_embeddings", 32}};
}
HubConfig read(const json& object) { return hub_config_from_json(object.dump(), "c"); }
std::string said(json object, const json& patch) {
  object.merge_patch(patch);
  return refused([&] { (void)read(object); });
}

}  // namespace

TEST(HubConfig, what_is_missing_has_the_default_of_its_family) {
  const HubConfig found = read(plain_llama());
  EXPECT_EQ(found.model.groups, 4);
  EXPECT_EQ(found.model.channels, 4);
  EXPECT_EQ(found.model.rotary.base, 10000);
  EXPECT_EQ(found.model.norm_epsilon, 1e-6);
  EXPECT_FALSE(found.model.tied_output);
  EXPECT_FALSE(found.model.qkv_bias);
  EXPECT_TRUE(found.notices.empty());
}

TEST(HubConfig, scaling_is_read_in_the_old_words_and_in_the_new_ones) {
  json old = plain_llama(), now = plain_llama();
  old["rope_theta"] = 500000;
  old["rope_scaling"] = {{"type", "linear"}, {"factor", 8.0}};
  now["rope_parameters"] = {{"rope_type", "linear"}, {"rope_theta", 500000}, {"factor", 8.0}};
  for (const json& object : {old, now}) {
    const RotaryConfig found = read(object).model.rotary;
    EXPECT_EQ(found.scaling, RotaryScaling::linear);
    EXPECT_EQ(found.base, 500000);
    EXPECT_EQ(found.factor, 8);
  }
}

TEST(HubConfig, what_weft_cannot_compute_is_refused_by_name) {
  const json base = plain_llama();
  EXPECT_EQ(said(base, {{"model_type", "mamba"}}),
            "c: \"model_type\" is \"mamba\", weft reads " + join(gpt_types, ", ") +
                ", bert, megatron-bert, roberta, xlm-roberta, camembert, t5, mt5, and the text of llama4, "
                "kimi_k25, qwen3_5, qwen3_5_moe, mistral3, gemma3");
  EXPECT_EQ(said(base, {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}),
            "c: rope scaling: \"rope_type\" is \"dynamic\", weft knows default, linear, llama3 and yarn");
  EXPECT_EQ(said(base, {{"rope_scaling", {{"rope_type", "linear"}, {"wobble", 1}}}}),
            "c: rope scaling: \"wobble\" is a setting that weft does not know");
  EXPECT_EQ(said(base, {{"hidden_act", "mish"}}),
            "c: \"hidden_act\" is \"mish\", which is no activation that weft knows");
  EXPECT_EQ(said(base, {{"mlp_bias", true}}),
            "c: \"attention_bias\" is missing, weft has biases in MLPs only where attention has some");
  EXPECT_EQ(said(base, {{"partial_rotary_factor", 0.5}}),
            "c: \"partial_rotary_factor\" is 0.5, weft can only compute 1.0");
  EXPECT_EQ(said(base, {{"quantization_config", {{"bits", 4}}}}),
            "c: \"quantization_config\" is {\"bits\":4}, weft reads fp8 in blocks, and mxfp4 of a gpt_oss");
  EXPECT_EQ(said(base, {{"layer_types", {"sliding_attention", "full_attention"}}}),
            "c: \"layer_types\" is [\"sliding_attention\",\"full_attention\"], but no window is switched on");
}

TEST(HubConfig, a_window_of_no_tokens_is_none) {
  json object = plain_llama();
  object.merge_patch({{"model_type", "qwen2"},
                      {"num_key_value_heads", 4},
                      {"use_sliding_window", false},
                      {"sliding_window", 0}});
  EXPECT_EQ(read(object).model.window, 0);
  EXPECT_EQ(said(object, {{"sliding_window", -1}}),
            "c: \"sliding_window\" is -1, expected a whole number from 1 to 2147483647");
}

TEST(HubConfig, sizes_that_no_model_has_are_refused) {
  const json base = plain_llama();
  EXPECT_EQ(said(base, {{"num_hidden_layers", 4000000000}}),
            "c: \"num_hidden_layers\" is 4000000000, expected a whole number from 1 to 10000");
  EXPECT_EQ(said(base, {{"hidden_size", -16}}),
            "c: \"hidden_size\" is -16, expected a whole number from 1 to 16777216");
  EXPECT_EQ(said(base, {{"vocab_size", nullptr}}),
            "c: \"vocab_size\" is missing, expected a whole number from 1 to 2147483647");
  EXPECT_EQ(said(base, {{"num_key_value_heads", 3}}),
            "c: model: 4 attention heads are not a multiple of 3 query groups");
  EXPECT_EQ(said(base, {{"head_dim", 3}}), "c: heads of 3 channels, and rotary positions turn them in pairs");
  EXPECT_EQ(said(base, {{"rms_norm_eps", "small"}}), "c: \"rms_norm_eps\" is \"small\", expected a number");
  EXPECT_EQ(said(base, {{"tie_word_embeddings", 1}}),
            "c: \"tie_word_embeddings\" is 1, expected true or false");
  EXPECT_EQ(refused([] { (void)hub_config_from_json("[]", "c"); }),
            "c: its JSON is array, expected an object");
}

TEST(HubConfig, a_setting_that_weft_does_not_know_is_said) {
  json object = plain_llama();
  object["novelty"] = 3;
  EXPECT_EQ(read(object).notices,
            std::vector<std::string>{"c: \"novelty\" is a setting that weft does not know and passes over"});
}

TEST(HubConfig, a_run_of_another_model_is_refused_with_the_first_setting_that_differs) {
  const HubConfig hub = read(plain_llama());
  ModelConfig run = hub.model;
  run.sequence = 8;
  run.max_positions = 8;  // rotary positions reach any length
  run.hidden_dropout = 0.1;
  run.init.std = 0.01;
  run.precision = Precision::bf16;
  EXPECT_NO_THROW(must_agree(run, hub.model, "c: its config.json"));
  run.rotary.base = 5000;
  EXPECT_EQ(
      refused([&] { must_agree(run, hub.model, "c: its config.json"); }),
      "c: its config.json says rotary.base 10000, and 5000 is asked for; {checkpoint.use_args} takes the "
      "model from there");
}

TEST(HubConfig, what_no_family_has_is_named) {
  const std::string start = "exchange: no Hugging Face model that weft writes has ",
                    end = "; it writes " + join(gpt_types, ", ");
  ModelConfig model = tiny_llama();
  EXPECT_EQ(type_for(model), "llama");
  model.window = 4;
  EXPECT_EQ(type_for(model), "mistral");
  model.window_layers = {1, 0};
  EXPECT_EQ(refused([&] { (void)type_for(model); }),
            start + "a window in some layers, without biases or norms of queries and keys" + end);
  model = tiny_llama();
  model.rotary.percent = 0.5;
  model.qk_norm = true;
  EXPECT_EQ(refused([&] { (void)type_for(model); }),
            start + "rotary positions on a part of each head, with norms of queries and keys" + end);
  model = tiny_llama();
  model.norm = NormKind::layer;
  EXPECT_EQ(type_for(model), "stablelm");
  model.experts.count = 2;
  EXPECT_EQ(refused([&] { (void)type_for(model); }), start + "rotary positions with a layer norm" + end);
  model = tiny_gpt2();
  EXPECT_EQ(type_for(model), "gpt2");
  model.qkv_bias = false;
  EXPECT_EQ(refused([&] { (void)type_for(model); }),
            start + "learned positions with a window, with scores that are scaled" + end);
  model = tiny_llama();
  model.activation = Activation::tanh;
  EXPECT_EQ(refused([&] { (void)hub_config_json(model, Dtype::f32, {}); }),
            "exchange: no Hugging Face model that weft writes has the activation tanh");
}
