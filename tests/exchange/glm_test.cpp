// GLM-4.5: DeepSeek-V3's experts behind attention that is not latent.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "weft/exchange/hub_write.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

namespace {

ModelConfig glm() { return model_of("glm4_moe"); }

std::string why_no_glm(const std::function<void(ModelConfig&)>& change) { return reason("glm4_moe", change); }

}  // namespace

TEST(HubGlm, has_settings_that_go_without_saying) {
  json object = settings_of("glm4_moe");
  for (const char* name : {"rope_parameters", "n_group", "topk_group", "routed_scaling_factor", "use_qk_norm",
                           "attention_bias", "first_k_dense_replace", "n_shared_experts", "norm_topk_prob",
                           "rms_norm_eps", "num_nextn_predict_layers", "head_dim"})
    object.erase(name);
  const ModelConfig model = hub_config_from_json(object.dump(), "c").model;
  EXPECT_EQ(model.rotary.percent, 0.5);
  EXPECT_EQ(model.rotary.base, 10000);
  EXPECT_EQ(model.channels, 4);
  EXPECT_EQ(model.norm_epsilon, 1e-5);
  EXPECT_FALSE(model.qk_norm || model.qkv_bias || model.linear_bias);
  EXPECT_EQ(model.experts.router.groups, 0);
  EXPECT_EQ(model.experts.router.scaling, 1);
  EXPECT_EQ(model.experts.shared_hidden, 12);
  EXPECT_EQ(model.experts.layers, (std::vector{0, 1}));
  EXPECT_EQ(model.ahead.depths, 0);
}

TEST(HubGlm, the_part_of_a_head_that_turns_is_read_from_where_either_version_writes_it) {
  json object = settings_of("glm4_moe");
  object.erase("rope_parameters");
  object.update({{"rope_theta", 1e6}, {"partial_rotary_factor", 0.25}, {"rope_scaling", nullptr}});
  const RotaryConfig found = hub_config_from_json(object.dump(), "c").model.rotary;
  EXPECT_EQ(found.base, 1e6);
  EXPECT_EQ(found.percent, 0.25);
}

// transformers says one of every such model, and stores what makes it of none.
TEST(HubGlm, further_tokens_are_there_where_their_tensors_are) {
  const auto depths = [](const json& object) {
    return hub_config_from_json(object.dump(), "c").model.ahead.depths;
  };
  json object = settings_of("glm4_moe");
  EXPECT_EQ(depths(object), 1);
  EXPECT_EQ(glm().ahead.depths, 0);
  object.erase("num_nextn_predict_layers");
  object["num_mtp_layers"] = 1;
  EXPECT_EQ(depths(object), 1);
  const TemporaryDirectory folder;
  ModelConfig config = glm();
  config.ahead.depths = 1;
  (void)write_with_gains(config, folder / "out", [](std::size_t) { return 1.0F; });
  const HubConfig again = read_hub_config(folder / "out");
  EXPECT_EQ(again.type, "glm4_moe");
  EXPECT_EQ(again.model.ahead.depths, 1);
  const HubWeights weights(folder / "out", again);
  EXPECT_EQ(weights.at("ahead.layers.0.join.weight").parts.front().name, "model.layers.2.eh_proj.weight");
  EXPECT_EQ(weights.at("ahead.layers.0.router.expert_bias").parts.front().name,
            "model.layers.2.mlp.gate.e_score_correction_bias");
}

TEST(HubGlm, what_weft_cannot_compute_is_refused_by_name) {
  EXPECT_EQ(said("glm4_moe", {{"norm_topk_prob", false}}),
            "c: \"norm_topk_prob\" is false, weft can only compute true with 4 experts of a token");
  EXPECT_EQ(said("glm4_moe", {{"scoring_func", "softmax"}}),
            "c: \"scoring_func\" is \"softmax\", weft can only compute \"sigmoid\"");
  EXPECT_EQ(
      said("glm4_moe", {{"topk_group", 1}}),
      "c: \"topk_group\" is 1, weft compares groups by their best 4 experts, and transformers by their best "
      "2: of 4 experts of a token it can only keep 2 groups");
  EXPECT_EQ(
      said("glm4_moe", {{"rope_parameters", {{"partial_rotary_factor", 0.4}}}}),
      "c: \"partial_rotary_factor\" is 0.4, and of heads of 8 channels weft turns an even number and no "
      "more than all");
  EXPECT_EQ(said_without("deepseek_v3", "", "model.layers.2.eh_proj.weight"),
            "holds model.layers.2.eh_proj.weight, which is no part of a deepseek_v3 model of 2 layers");
}

TEST(HubGlm, that_no_family_has_are_named) {
  EXPECT_EQ(type_for(glm()), "glm4_moe");
  const std::string chosen = "experts chosen by sigmoids, with ";
  EXPECT_EQ(why_no_glm([](auto& m) { m.experts.router.expert_bias = false; }),
            "experts chosen by sigmoids without an expert bias");
  EXPECT_EQ(why_no_glm([](auto& m) { m.qk_norm_whole = true; }),
            chosen + "biases and norms of whole queries and keys");
  EXPECT_EQ(why_no_glm([](auto& m) { m.linear_bias = true; }), "experts or latent attention with biases");
  EXPECT_EQ(why_no_glm([](auto& m) { m.window = 4; }), chosen + "a window and biases");
  EXPECT_EQ(why_no_glm([](auto& m) { m.experts.latent = 8; }), "experts that work on fewer channels");
  EXPECT_EQ(why_no_glm([](auto& m) { m.experts.shared_gate = true; }),
            chosen + "a gate of the shared expert");
  EXPECT_EQ(why_no_glm([](auto& m) { m.experts.shared_hidden = 13; }),
            chosen + "a shared expert that is not a multiple as wide as the others");
  EXPECT_EQ(why_no_glm([](auto& m) { m.experts.router.groups_kept = 1; }),
            "groups of experts that are compared by other than their best two");
  EXPECT_EQ(why_no_glm([](auto& m) {
              m.experts.layers = {1, 0};
            }),
            chosen + "layers without experts behind some that have them");
  EXPECT_EQ(why_no_glm([](auto& m) {
              m.rotary.skip_layers = {0, 1};
            }),
            "layers without rotary positions among others of which a part turns");
}

// One expert of a token keeps its own weight, and the file says so.
TEST(HubGlm, of_one_expert_a_token_is_written_and_read) {
  ModelConfig one = glm();
  one.experts.router.chosen = 1;
  one.experts.router.groups = one.experts.router.groups_kept = 0;
  const HubConfig again = hub_config_from_json(hub_config_json(one, Dtype::f32, {}), "c");
  EXPECT_NO_THROW(must_agree(one, again.model, "c"));
}
