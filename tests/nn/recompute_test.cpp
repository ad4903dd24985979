#include "weft/nn/recompute.h"

#include <gtest/gtest.h>

#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Trained {
  double loss;
  std::map<std::string, std::vector<double>> grads;
  std::int64_t peak;
};

Trained train_once(ModelConfig config, const RecomputeConfig& recompute) {
  config.recompute = recompute;
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device);
  const Batch batch = tiny_batch(*device, config, 2);
  device->forget_peaks();
  const double loss = model.train(batch);
  return {loss, model.grads(), device->memory().peak[std::size_t(Use::activations)]};
}

}  // namespace

TEST(Recompute, makes_heads_of_latents_again) {
  ModelConfig config = tiny_latent();
  config.layers = 6;
  config.hidden_dropout = config.attention_dropout = 0.3;
  const Trained plain = train_once(config, {});
  const Trained again =
      train_once(config, {.what = Recompute::selective, .modules = {RecomputeModule::latent_heads}});
  EXPECT_EQ(again.loss, plain.loss);
  EXPECT_EQ(again.grads, plain.grads);
  EXPECT_LT(again.peak, plain.peak);
}

TEST(Recompute, makes_experts_again_as_they_were_chosen) {
  ModelConfig config = tiny_mixture();
  config.layers = 6;
  config.experts.layers.clear();
  config.experts.router.jitter = 0.1;
  complete(config);
  const Trained plain = train_once(config, {});
  const Trained again =
      train_once(config, {.what = Recompute::selective, .modules = {RecomputeModule::experts}});
  EXPECT_EQ(again.loss, plain.loss);
  EXPECT_EQ(again.grads, plain.grads);
  EXPECT_LT(again.peak, plain.peak);
}

TEST(Recompute, makes_shared_experts_again) {
  ModelConfig config = tiny_mixture();
  config.layers = 6;
  config.experts.layers.clear();
  config.experts.shared_hidden = 48;
  complete(config);
  const Trained plain = train_once(config, {});
  const Trained again =
      train_once(config, {.what = Recompute::selective, .modules = {RecomputeModule::shared_experts}});
  EXPECT_EQ(again.loss, plain.loss);
  EXPECT_EQ(again.grads, plain.grads);
  EXPECT_LT(again.peak, plain.peak);
}

namespace {

/// Six layers, of a T5 two in its encoder.
ModelConfig deep(ModelConfig config) {
  config.layers = config.kind == "t5" ? 2 : 6;
  if (config.kind == "t5") config.decoder_layers = 4;
  config.hidden_dropout = config.attention_dropout = 0.3;
  complete(config);
  return config;
}

class RecomputeOf : public ::testing::TestWithParam<ModelConfig> {};

}  // namespace

TEST_P(RecomputeOf, changes_no_bit_and_keeps_less) {
  const ModelConfig config = deep(GetParam());
  const Trained plain = train_once(config, {});
  for (const RecomputeConfig& how : {
           RecomputeConfig{.what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 1},
           RecomputeConfig{.what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 4},
           RecomputeConfig{.what = Recompute::full, .method = RecomputeMethod::block, .layers = 3},
           RecomputeConfig{.what = Recompute::selective, .modules = {RecomputeModule::norm}},
           RecomputeConfig{.what = Recompute::selective, .modules = {RecomputeModule::mlp}},
       }) {
    const Trained again = train_once(config, how);
    EXPECT_EQ(again.loss, plain.loss);
    EXPECT_EQ(again.grads, plain.grads);
    EXPECT_LT(again.peak, plain.peak);
  }
}

namespace {

/// What is kept is f32, and what reads it is not.
ModelConfig beside_f32(ModelConfig config) {
  config.precision = Precision::bf16;
  config.residual_in_f32 = true;
  return config;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Families, RecomputeOf,
                         ::testing::Values(tiny_gpt2(), tiny_bert(), tiny_t5(), beside_f32(tiny_gpt2()),
                                           beside_f32(tiny_t5())),
                         [](const auto& of) { return of.param.kind + std::to_string(of.index); });
