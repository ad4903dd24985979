// Our numbers against PyTorch's: tests/golden/model/make.py made them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/model/golden_weights.h"
#include "tests/support/source_dir.h"
#include "tests/support/tiny.h"
#include "weft/nn/heads.h"
#include "weft/optim/norms.h"
#include "weft/optim/rules.h"

using namespace weft;
using namespace weft::testing;
using nlohmann::json;

namespace {

constexpr std::int64_t rows = 2, sequence = 16;
constexpr int steps = 20;

json golden(const std::string& name) {
  std::ifstream file(std::string(WEFT_SOURCE_DIR) + "/tests/golden/model/" + name + ".json");
  return json::parse(file);
}

ModelConfig config_of(const json& g) {
  const json& c = g["config"];
  ModelConfig config;
  config.layers = c["layers"];
  config.hidden = c["hidden"];
  config.heads = c["heads"];
  config.groups = c["groups"];
  config.ffn_hidden = c["ffn"];
  config.vocabulary = c["vocabulary"];
  config.sequence = config.max_positions = sequence;
  config.positions = c["learned"] ? Positions::learned : Positions::rotary;
  config.norm = c["layer_norm"] ? NormKind::layer : NormKind::rms;
  config.linear_bias = config.qkv_bias = c["biases"];
  config.gated = c["gated"];
  config.activation = config.gated ? Activation::silu : Activation::gelu;
  config.tied_output = c["tied"];
  config.hidden_dropout = config.attention_dropout = 0;
  return config;
}

void set_weights(TinyModel& model, const json& g) {
  std::map<std::string, std::uint32_t> places;
  for (const std::string name : g["parameters"]) places.emplace(name, std::uint32_t(places.size()));
  set_golden_weights(model, places, 0.4);
}

Batch batch_of(Device& device, int step, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens, targets, places, positions;
  for (std::int64_t i = 0; i < sequence; ++i) {
    places.push_back(std::int32_t(i));
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto token = [&](std::int64_t at) {
        return std::int32_t(mix(std::uint32_t(7919 * step + 131 * row + at)) % std::uint32_t(vocabulary));
      };
      tokens.push_back(token(i));
      targets.push_back(token(i + 1));
      positions.push_back(std::int32_t(i));
    }
  }
  const Shape shape{sequence, rows};
  Batch batch;
  batch.text = {.tokens = from_host(device, shape, tokens),
                .places = from_host(device, {sequence}, places),
                .positions = from_host(device, shape, positions),
                .types = {},
                .segments = {}};
  batch.targets = from_host(device, shape, targets);
  batch.mask = from_host(device, shape, std::vector<float>(sequence * rows, 1.F));
  batch.hold_samples(device, {0, 1});
  return batch;
}

/// The key part of a QKV bias moves no score against another: its gradient is zero, and what is computed is
/// noise.
bool is_noise(const std::string& name, std::size_t i, const ModelConfig& config) {
  if (!name.ends_with("attention.qkv.bias")) return false;
  const std::int64_t per_group = config.heads / config.groups;
  const std::int64_t part = std::int64_t(i) / config.channels % (per_group + 2);
  return part == per_group;
}

struct Precise {
  Precision precision;
  double gradient, loss, later;  // largest differences: of a gradient by its tensor's greatest, of losses
};

class Golden : public ::testing::TestWithParam<std::tuple<std::string, Precise>> {
 protected:
  Golden() : g_(golden(std::get<0>(GetParam()))), config_(config_of(g_)), within_(std::get<1>(GetParam())) {
    config_.precision = within_.precision;
    complete(config_);
  }
  json g_;
  ModelConfig config_;
  Precise within_;
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
};

}  // namespace

TEST_P(Golden, loss_and_every_gradient_are_pytorchs) {
  TinyModel model(config_, *device_);
  set_weights(model, g_);
  const Batch batch = batch_of(*device_, 0, config_.vocabulary);
  const double loss = model.train(batch, 1.F / float(rows * sequence));
  EXPECT_NEAR(loss, double(g_["loss"]), within_.loss);
  for (const auto& [name, grad] : model.grads()) {
    const std::vector<double> expected = g_["grads"][name];
    double greatest = 0;
    for (const double value : expected) greatest = std::max(greatest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (is_noise(name, i, config_)) {
        EXPECT_LT(std::abs(grad[i]), 1e-6 + 0.1 * within_.gradient) << name << " " << i;
        continue;
      }
      ASSERT_NEAR(grad[i], expected[i], within_.gradient * greatest) << name << " " << i;
    }
  }
}

TEST_P(Golden, twenty_steps_of_adam_with_warm_up_and_clipping_have_pytorchs_losses) {
  TinyModel model(config_, *device_);
  set_weights(model, g_);
  const auto adam = make_optimizer(model.weights(), {.beta1 = 0.9, .beta2 = 0.95});
  for (int step = 0; step < steps; ++step) {
    model.weights().zero_grads();
    const double loss =
        model.train(batch_of(*device_, step, config_.vocabulary), 1.F / float(rows * sequence));
    EXPECT_NEAR(loss, double(g_["losses"][std::size_t(step)]), within_.later) << "step " << step;
    const double norm = global_norm(model.weights(), Look::grads);
    EXPECT_NEAR(norm, double(g_["norms"][std::size_t(step)]), within_.later * 10) << "step " << step;
    const double rate = 1e-2 * std::min(step / 5.0, 1.0);
    adam->update({.rate = rate, .ends_rate = rate, .decay = 0.1, .grad_scale = clip_factor(norm, 1.0)});
  }
}

// f32 is held to the last digits that single precision carries. bf16 keeps 8 bits of every activation and
// weight, so a gradient of a two-layer model is good to a few percent of its tensor's greatest, and a loss
// of 4.3 to 0.02.
INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         ::testing::Combine(::testing::Values("gpt2", "llama"),
                                            ::testing::Values(Precise{Precision::f32, 1e-5, 1e-5, 1e-4},
                                                              Precise{Precision::bf16, 0.05, 0.02, 0.05})),
                         [](const auto& test) {
                           const bool f32 = std::get<1>(test.param).precision == Precision::f32;
                           return std::get<0>(test.param) + (f32 ? "_f32" : "_bf16");
                         });
