// Latent attention and further tokens against megatron-core's: tests/golden/latent/make.py made the numbers.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/model/golden_weights.h"
#include "tests/support/source_dir.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;
using nlohmann::json;

namespace {

constexpr std::int64_t rows = 2, sequence = 16;

json golden(const std::string& name) {
  std::ifstream file(std::string(WEFT_SOURCE_DIR) + "/tests/golden/latent/" + name + ".json");
  return json::parse(file);
}

void set_latent(ModelConfig& config, const json& g) {
  config.latent = {.on = true,
                   .query_rank = g["q_lora_rank"].is_null() ? 0 : g["q_lora_rank"].get<std::int64_t>(),
                   .rank = g["kv_lora_rank"],
                   .plain_channels = g["qk_head_dim"],
                   .turned_channels = g["qk_pos_emb_head_dim"],
                   .value_channels = g["v_head_dim"]};
  if (g["rope_type"] == "rope") return;
  config.rotary.scaling = RotaryScaling::yarn;
  config.rotary.factor = g["rotary_scaling_factor"];
  config.rotary.original_positions = g["original_max_position_embeddings"];
  config.rotary.beta_fast = g["beta_fast"];
  config.rotary.beta_slow = g["beta_slow"];
  config.rotary.mscale = g["mscale"];
  config.rotary.mscale_all = g["mscale_all_dim"];
}

ModelConfig config_of(const json& g) {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 2;
  config.ffn_hidden = 24;
  config.vocabulary = 29;
  config.sequence = config.max_positions = sequence;
  config.positions = g["learned"] ? Positions::learned : Positions::rotary;
  config.norm = NormKind::rms;
  config.qk_norm = g["norms"];
  config.linear_bias = config.qkv_bias = false;
  config.gated = true;
  config.activation = Activation::silu;
  config.tied_output = g["tied"];
  config.hidden_dropout = config.attention_dropout = 0;
  config.ahead = {.depths = g["depths"], .repeated = g.value("repeated", false), .factor = 0.3};
  if (!g["latent"].is_null()) set_latent(config, g["latent"]);
  complete(config);
  return config;
}

/// By the place of a parameter among the sorted names, which is JSON's order.
void set_weights(TinyModel& model, const json& g) {
  std::map<std::string, std::uint32_t> places;
  for (const auto& [name, grad] : g["grads"].items()) places.emplace(name, std::uint32_t(places.size()));
  set_golden_weights(model, places, 0.6);
}

Batch batch_of(Device& device, const ModelConfig& config) {
  Batch batch = tiny_rows(device, config, {.count = rows});
  const auto set = [&](const Tensor& to, auto value) {
    for (std::int64_t i = 0; i < sequence; ++i)
      for (std::int64_t row = 0; row < rows; ++row) value(to, i * rows + row, i, row);
  };
  const auto token = [&](std::int64_t row, std::int64_t at) {
    return std::int32_t(mix(std::uint32_t(131 * row + at)) % std::uint32_t(config.vocabulary));
  };
  set(batch.text.tokens, [&](const Tensor& to, std::int64_t at, std::int64_t i, std::int64_t row) {
    to.as<std::int32_t>()[std::size_t(at)] = token(row, i);
  });
  set(batch.targets, [&](const Tensor& to, std::int64_t at, std::int64_t i, std::int64_t row) {
    to.as<std::int32_t>()[std::size_t(at)] = token(row, i + 1);
  });
  set(batch.mask, [&](const Tensor& to, std::int64_t at, std::int64_t i, std::int64_t row) {
    to.as<float>()[std::size_t(at)] = mix(std::uint32_t(977 * row + i + 5)) % 4 > 0 ? 1.F : 0.F;
  });
  look_ahead(batch, config.ahead.depths);
  return batch;
}

class LatentGolden : public ::testing::TestWithParam<std::string> {};

/// Of every loss the tokens that count: of the one next to each place, and of those further on.
std::vector<double> counting(const Batch& batch, int depths) {
  const auto mask = batch.mask.as<float>();
  std::vector<double> out;
  for (int ahead = 0; ahead <= depths; ++ahead) {
    out.push_back(0);
    for (std::size_t i = std::size_t(ahead * rows); i < mask.size(); ++i) out.back() += double(mask[i]);
  }
  return out;
}

}  // namespace

TEST_P(LatentGolden, losses_and_every_gradient_are_megatrons) {
  const auto device = open_device("cpu", {.threads = 1});
  const json g = golden(GetParam());
  const ModelConfig config = config_of(g);
  TinyModel model(config, *device);
  set_weights(model, g);
  const Batch batch = batch_of(*device, config);
  const std::vector<double> counts = counting(batch, config.ahead.depths);
  LossFactors factors{.token = float(1 / counts[0])};
  for (std::size_t k = 1; k < counts.size(); ++k) factors.ahead[k - 1] = float(1 / counts[k]);
  const std::vector<double> sums = model.train(batch, factors);
  EXPECT_NEAR(sums[0] / counts[0], double(g["loss"]), 1e-5);
  for (std::size_t k = 1; k < counts.size(); ++k)
    EXPECT_NEAR(sums[k] / counts[k], double(g["ahead"][k - 1]), 1e-5);
  const auto grads = model.grads();
  EXPECT_EQ(grads.size(), g["grads"].size());
  for (const auto& [name, grad] : grads) {
    const std::vector<double> expected = g["grads"][name];
    ASSERT_GE(grad.size(), expected.size()) << name;
    double greatest = 0;
    for (const double value : expected) greatest = std::max(greatest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(grad[i], expected[i], 1e-5 * greatest + 1e-8) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Megatron, LatentGolden,
                         ::testing::Values("yarn", "rope", "ahead_1", "ahead_2", "ahead_round"),
                         [](const auto& test) { return test.param; });
