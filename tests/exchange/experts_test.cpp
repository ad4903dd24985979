// Mixtures of experts and latent attention in Hugging Face's words: every expert is accounted for, and what
// weft computes in another way is refused.
#include <gtest/gtest.h>

#include "tests/exchange/changed.h"
#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/exchange/hub_write.h"
#include "weft/exchange/mxfp4.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using nlohmann::json;
using support::TemporaryDirectory;

TEST(HubExperts, a_missing_expert_and_one_too_many_are_named) {
  EXPECT_EQ(
      said_without("mixtral", "model.layers.1.block_sparse_moe.experts.3.w2.weight"),
      "lacks model.layers.1.block_sparse_moe.experts.3.w2.weight, which layers.1.experts.3.down.weight is "
      "made of");
  EXPECT_EQ(
      said_without("mixtral", "", "model.layers.1.block_sparse_moe.experts.4.w2.weight"),
      "holds model.layers.1.block_sparse_moe.experts.4.w2.weight, which is no part of a mixtral model of 2 "
      "layers");
  EXPECT_EQ(
      said_without("deepseek_v3", "model.layers.1.mlp.gate.e_score_correction_bias"),
      "lacks model.layers.1.mlp.gate.e_score_correction_bias, which layers.1.router.expert_bias is made of");
  EXPECT_EQ(
      said_without("qwen2_moe", "model.layers.1.mlp.shared_expert_gate.weight"),
      "lacks model.layers.1.mlp.shared_expert_gate.weight, which layers.1.shared.gate.weight is made of");
}

// As DeepSeek's own files have them, behind the last layer, and transformers passes them over.
TEST(HubExperts, further_tokens_are_read_and_written) {
  const TemporaryDirectory folder;
  ModelConfig config = model_of("deepseek_v3");
  config.ahead.depths = 1;
  SoloCommunicator solo;
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device);
  std::map<std::string, std::vector<float>> values;
  model.stage().each_parameter([&](Parameter& p) {
    auto all = to_host<float>(p.value);
    all.resize(std::size_t(p.pieces.front().where.global.elements()));
    values[p.name] = all;
  });
  write_hub(folder / "out", config, [&](const Recipe& r) { return values.at(r.name); }, {});
  const HubConfig again = read_hub_config(folder / "out");
  EXPECT_EQ(again.model.ahead.depths, 1);
  const HubWeights copy(folder / "out", again);
  for (const Recipe& recipe : copy.all()) {
    std::vector<float> out(std::size_t(recipe.shape.elements()));
    copy.read(recipe, 0, out);
    EXPECT_EQ(out, values.at(recipe.name)) << recipe.name;
  }
  EXPECT_EQ(copy.at("ahead.layers.0.join.weight").parts.front().name, "model.layers.2.eh_proj.weight");
}

TEST(HubExperts, are_read_from_both_names_of_their_number) {
  json object = settings_of("qwen3_moe");
  object["num_local_experts"] = object["num_experts"];
  object.erase("num_experts");
  EXPECT_EQ(hub_config_from_json(object.dump(), "c").model.experts.count, 4);
}

TEST(HubExperts, stand_in_the_layers_that_the_settings_say) {
  EXPECT_EQ(model_of("mixtral").experts.layers, (std::vector<int>{1, 1}));
  EXPECT_EQ(model_of("qwen2_moe").experts.layers, (std::vector<int>{0, 1}));
  EXPECT_EQ(model_of("qwen3_moe").experts.layers, (std::vector<int>{0, 1}));
  EXPECT_EQ(model_of("deepseek_v3").experts.layers, (std::vector<int>{0, 1}));
}

TEST(HubExperts, that_are_chosen_in_another_way_are_refused) {
  EXPECT_EQ(said("deepseek_v3", {{"scoring_func", "softmax"}}),
            "c: \"scoring_func\" is \"softmax\", weft can only compute \"sigmoid\"");
  EXPECT_EQ(said("deepseek_v3", {{"norm_topk_prob", false}}),
            "c: \"norm_topk_prob\" is false, weft can only compute true with 4 experts of a token");
  EXPECT_EQ(said("deepseek_v3", {{"num_experts_per_tok", 1}}),
            "c: \"norm_topk_prob\" is true, weft can only compute false with 1 expert of a token");
  EXPECT_EQ(said("deepseek_v3", {{"topk_group", 5}}), "c: \"topk_group\" is 5, expected at most n_group");
  EXPECT_EQ(
      said("deepseek_v3", {{"topk_group", 1}}),
      "c: \"topk_group\" is 1, weft compares groups by their best 4 experts, and transformers by their best "
      "2: of 4 experts of a token it can only keep 2 groups");
  EXPECT_EQ(said("deepseek_v3", {{"rope_interleave", false}}),
            "c: \"rope_interleave\" is false, weft can only compute true");
  EXPECT_EQ(said("deepseek_v3", {{"attention_bias", true}}),
            "c: \"attention_bias\" is true, weft has biases in attention and MLP, or in neither");
  EXPECT_EQ(said("deepseek_v2", {{"topk_method", "noaux_tc"}}),
            "c: \"topk_method\" is \"noaux_tc\", weft knows greedy and group_limited_greedy");
  EXPECT_EQ(said("deepseek_v2", {{"norm_topk_prob", true}}),
            "c: \"norm_topk_prob\" is true, weft can only compute false");
  EXPECT_EQ(
      said("deepseek_v2", {{"topk_group", 1}}),
      "c: \"topk_group\" is 1, weft compares groups by their best 2 experts, and transformers by their best "
      "1: of 2 experts of a token it can only keep 2 groups");
  EXPECT_EQ(said("gpt_oss", {{"swiglu_alpha", 1.5}}),
            "c: \"swiglu_alpha\" is 1.5, weft can only compute 1.702");
  EXPECT_EQ(said("gpt_oss", {{"hidden_act", "gelu"}}),
            "c: \"hidden_act\" is \"gelu\", weft can only compute \"silu\"");
  EXPECT_EQ(said("gpt_oss", {{"attention_bias", false}}),
            "c: \"attention_bias\" is false, weft can only compute true");
  EXPECT_EQ(said("gpt_oss", {{"quantization_config", {{"quant_method", "gptq"}}}}),
            "c: \"quantization_config\" is {\"quant_method\":\"gptq\"}, weft reads mxfp4");
  EXPECT_EQ(said("olmoe", {{"clip_qkv", 8.0}}), "c: \"clip_qkv\" is 8.0, which weft cannot compute");
  EXPECT_EQ(said("qwen2_moe", {{"num_experts_per_tok", 5}}),
            "c: \"num_experts_per_tok\" is 5, expected a whole number from 1 to 4");
  EXPECT_EQ(said("llama2", {{"num_local_experts", 4}}),
            "c: \"num_local_experts\" is 4, which weft cannot compute");
}

TEST(HubExperts, that_no_family_has_are_named) {
  const auto refused_of = [](ModelConfig model) {
    return reason_in(refused([&] { (void)type_for(model); }));
  };
  ModelConfig model = model_of("mixtral");
  EXPECT_EQ(type_for(model), "mixtral");
  model.experts.router.score = RouterScore::sigmoid;
  EXPECT_EQ(refused_of(model), "experts chosen by sigmoids without an expert bias");
  model = model_of("mixtral");
  model.experts.shared_hidden = 8;
  EXPECT_EQ(refused_of(model), "a shared expert without biases of queries, keys and values");
  model = model_of("mixtral");
  model.experts.router.softmax_first = true;
  EXPECT_EQ(refused_of(model),
            "weights of experts that do not add up to 1, without norms of queries and keys");
  model = model_of("deepseek_v3");
  EXPECT_EQ(type_for(model), "deepseek_v3");
  model.experts.shared_gate = true;
  EXPECT_EQ(refused_of(model), "latent attention with a gate of the shared expert");
  model = model_of("deepseek_v3");
  model.experts.layers = {1, 0};
  EXPECT_EQ(refused_of(model), "latent attention with layers without experts behind some that have them");
  model = model_of("deepseek_v3");
  model.experts.router.expert_bias = false;
  EXPECT_EQ(refused_of(model),
            "latent attention with experts that are chosen by roots or without an expert bias");
  model = model_of("deepseek_v2");
  EXPECT_EQ(type_for(model), "deepseek_v2");
  model.experts.router.softmax_first = false;
  EXPECT_EQ(refused_of(model), "latent attention with softmax over the chosen experts");
  model = model_of("deepseek_v2");
  model.ahead.depths = 1;
  EXPECT_EQ(refused_of(model), "further tokens with experts that are chosen by softmax");
  model = tiny_gpt2();
  model.experts.count = 2;
  EXPECT_EQ(refused_of(model), "learned positions with experts");
  model = model_of("llama2");
  model.ahead.depths = 1;
  EXPECT_EQ(refused_of(model), "further tokens without latent attention");
  model = model_of("mixtral");
  model.experts.residual = true;
  EXPECT_EQ(refused_of(model), "experts beside an MLP, weighed by a gate");
  model = model_of("deepseek_v3");
  model.ahead = {.depths = 2, .repeated = true};
  EXPECT_EQ(refused_of(model), "several further tokens through one layer");
}

TEST(HubSinks, that_no_family_has_are_named) {
  const ModelConfig oss = model_of("gpt_oss");
  EXPECT_EQ(type_for(oss), "gpt_oss");
  const auto reason = [&](const std::function<void(ModelConfig&)>& change) {
    ModelConfig model = oss;
    change(model);
    return reason_in(refused([&] { (void)type_for(model); }));
  };
  EXPECT_EQ(reason([](auto& m) { m.sink = Sink::zero; }), "attention sinks that do not learn");
  EXPECT_EQ(reason([](auto& m) { m.sink = Sink::none; }),
            "gates with a limit or an offset, without attention sinks");
  EXPECT_EQ(reason([](auto& m) { m.positions = Positions::learned; }),
            "attention sinks without rotary positions");
  EXPECT_EQ(reason([](auto& m) { m.norm = NormKind::layer; }), "attention sinks with a layer norm");
  EXPECT_EQ(reason([](auto& m) { m.qk_norm = true; }), "attention sinks with norms of queries and keys");
  EXPECT_EQ(reason([](auto& m) { m.qkv_bias = m.linear_bias = false; }), "attention sinks without biases");
  EXPECT_EQ(reason([](auto& m) { m.experts.layers = {0, 1}; }), "attention sinks in layers without experts");
  for (const auto& gates : std::vector<std::function<void(ModelConfig&)>>{
           [](auto& m) { m.activation = Activation::silu; }, [](auto& m) { m.gate_limit = 0; },
           [](auto& m) { m.gate_offset = 0; }})
    EXPECT_EQ(reason(gates),
              "attention sinks with gates other than quick_gelu's with a limit and an offset of 1");
  EXPECT_EQ(reason([](auto& m) { m.experts.router.softmax_first = true; }),
            "attention sinks with weights of experts that are no softmax over the chosen");
  EXPECT_EQ(reason([](auto& m) { m.experts.shared_hidden = 8; }),
            "attention sinks with shared experts, or with experts on fewer channels");
}

TEST(HubSinks, of_gpt_oss_have_settings_that_go_without_saying) {
  json object = settings_of("gpt_oss");
  for (const char* name :
       {"rope_parameters", "layer_types", "sliding_window", "swiglu_limit", "rms_norm_eps"})
    object.erase(name);
  object["max_position_embeddings"] = 131072;
  const ModelConfig model = hub_config_from_json(object.dump(), "c").model;
  EXPECT_EQ(model.window, 128);
  EXPECT_EQ(model.window_layers, (std::vector{1, 0}));
  EXPECT_EQ(model.gate_limit, 7);
  EXPECT_EQ(model.norm_epsilon, 1e-5);
  EXPECT_EQ(model.rotary.scaling, RotaryScaling::yarn);
  EXPECT_EQ(model.rotary.base, 150000);
  EXPECT_EQ(model.rotary.factor, 32);
  EXPECT_EQ(model.rotary.original_positions, 4096);
  EXPECT_FALSE(model.rotary.whole_channels);
}

// The oracle for what make.py's model is made of: every code under every scale, wherever one begins.
TEST(FourBits, are_numbers_and_powers_of_two) {
  constexpr double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<std::byte> codes, scales;
  for (int scale = 0; scale < 255; ++scale) {
    scales.push_back(std::byte(scale));
    for (int pair = 0; pair < 16; ++pair) codes.push_back(std::byte(pair * 16 + (scale + pair) % 16));
  }
  const auto expected = [&](std::size_t i) {
    const auto pair = std::to_integer<unsigned>(codes[i / 2]), code = i % 2 == 0 ? pair % 16 : pair / 16;
    const double size = numbers[code % 8] * std::pow(2.0, double(i / 32) - 127);
    return float(code < 8 ? size : -size);
  };
  for (const std::size_t first : {0U, 1U, 31U, 32U, 777U})
    for (const std::size_t count : {1U, 64U, 1000U}) {
      std::vector<float> found(count);
      unpack_mxfp4(codes, scales, std::int64_t(first), found);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], expected(first + i)) << first + i;
    }
}

TEST(FourBits, that_do_not_fit_are_named) {
  const std::string stem = "model.layers.1.mlp.experts.down_proj";
  EXPECT_EQ(said_without("gpt_oss_packed", stem + "_scales"),
            "lacks " + stem + ", which layers.1.experts.0.down.weight is made of");
  EXPECT_EQ(said_without("gpt_oss_packed", stem + "_scales", stem + "_scales"),
            stem + "_blocks is [4, 32, 1, 16] and " + stem +
                "_scales [4], its config.json asks for [4, 32, 1, 16] and [4, 32, 1]");
  EXPECT_EQ(said_without("gpt_oss_packed", "", stem), stem + " is [4], its config.json asks for [4, 32, 32]");
}

// What chooses experts stays f32 where the weights are stored in bf16, as DeepSeek's files have it.
TEST(HubExperts, keep_the_bits_of_their_bias_in_a_directory_of_bf16) {
  const TemporaryDirectory folder;
  const HubConfig config = read_hub_config(hub_model("deepseek_v3"));
  const HubWeights weights(hub_model("deepseek_v3"), config);
  const auto numbers_of = [](const HubWeights& from, const Recipe& recipe) {
    std::vector<float> out(std::size_t(recipe.shape.elements()));
    from.read(from.at(recipe.name), 0, out);
    return out;
  };
  write_hub(folder / "out", config.model, [&](const Recipe& r) { return numbers_of(weights, r); },
            {.dtype = Dtype::bf16, .tokens = {}});
  const HubWeights copy(folder / "out", read_hub_config(folder / "out"));
  const Recipe& bias = weights.at("layers.1.router.expert_bias");
  EXPECT_EQ(numbers_of(copy, bias), numbers_of(weights, bias));
  EXPECT_EQ(copy.dtype(copy.at("layers.1.router.weight")), Dtype::bf16);
}
