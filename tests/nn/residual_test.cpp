// A residual stream in f32 beside products in half the bits.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/placed.h"
#include "weft/ops/elementwise.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Grads = std::map<std::string, std::vector<double>>;

ModelConfig in(Precision precision, ModelConfig config, bool wide = true) {
  config.precision = precision;
  config.residual_in_f32 = wide;
  complete(config);
  return config;
}

ModelConfig changed(ModelConfig config, const std::function<void(ModelConfig&)>& change) {
  change(config);
  complete(config);
  return config;
}

struct Case {
  std::string name;
  ModelConfig config;
};

std::vector<Case> cases() {
  return {{"gpt2", tiny_gpt2()},
          {"dropout", changed(tiny_gpt2(), [](auto& c) { c.hidden_dropout = 0.2; })},
          {"llama", tiny_llama()},
          {"norms_around", tiny_gemma()},
          {"norms_behind", tiny_olmo()},
          {"norms_behind_and_dropout", changed(tiny_olmo(), [](auto& c) { c.hidden_dropout = 0.2; })},
          {"sums_of_norms", changed(tiny_gpt2(), [](auto& c) { c.residual_after_norm = true; })},
          {"some_tokens",
           changed(tiny_llama(),
                   [](auto& c) {
                     c.token_drop = {.layers = {0, 1}, .least = 4, .most = 4, .steps = 1, .multiple = 1};
                   })},
          {"layers_of_one_thing_each", tiny_hybrid("M*-")},
          {"further_tokens", tiny_ahead(tiny_gpt2())},
          {"further_tokens_norms_behind", tiny_ahead(tiny_olmo())},
          {"embedding_multiplier", changed(tiny_llama(), [](auto& c) { c.embedding_multiplier = 4; })},
          {"two_behind_own_norms", tiny_neox()},
          {"two_behind_one_norm", tiny_command()},
          {"bert", tiny_bert()},
          {"t5", tiny_t5()}};
}

Grads grads_of(const ModelConfig& config) {
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device);
  (void)model.train(tiny_batch(*device, config, 2));
  return model.grads();
}

/// How far two gradients are apart, as a part of the second.
double apart(const Grads& a, const Grads& b) {
  double difference = 0, whole = 0;
  for (const auto& [name, values] : b)
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(a.at(name)[i] - values[i], 2);
      whole += values[i] * values[i];
    }
  return std::sqrt(difference / whole);
}

class ResidualInF32 : public ::testing::TestWithParam<Case> {};

/// value += step * along, rounded as weights are; what was added times along.
double moved(const Tensor& value, const std::vector<double>& along, double step) {
  const std::vector<double> before = numbers(value);
  std::vector<float> after;
  for (std::size_t i = 0; i < along.size(); ++i) after.push_back(float(before[i] + step * along[i]));
  ops::copy_into(value, from_host(value.device(), value.shape(), after));
  const std::vector<double> now = numbers(value);
  double sum = 0;
  for (std::size_t i = 0; i < along.size(); ++i) sum += (now[i] - before[i]) * along[i];
  return sum;
}

}  // namespace

// Along its own gradient, where the loss changes most: rounding is a hundredth of that.
TEST_P(ResidualInF32, has_gradients_that_agree_with_differences) {
  const ModelConfig config = in(Precision::f16, GetParam().config);
  const auto device = open_device("cpu:reference", {.threads = 1});
  TinyModel model(config, *device);
  const Batch batch = tiny_batch(*device, config, 2);
  (void)model.train(batch);
  const Grads grads = model.grads();
  model.stage().each_parameter([&](Parameter& p) {
    const std::vector<double>& grad = grads.at(p.name);
    double most = 1e-9;
    for (const double g : grad) most = std::max(most, std::abs(g));
    const double step = 0.004 / most;
    const Tensor kept = ops::contiguous(p.value), copy = empty_like(kept);
    ops::copy_into(copy, kept);
    double expected = moved(p.value, grad, step);
    const double up = model.objective(batch);
    ops::copy_into(p.value, copy);
    expected -= moved(p.value, grad, -step);
    const double down = model.objective(batch);
    ops::copy_into(p.value, copy);
    EXPECT_NEAR(up - down, expected, 0.03 * expected + 0.01) << p.name;
  });
}

INSTANTIATE_TEST_SUITE_P(Models, ResidualInF32, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(ResidualInF32, changes_no_bit_of_a_model_in_f32) {
  for (const Case& c : cases())
    EXPECT_EQ(grads_of(in(Precision::f32, c.config)), grads_of(in(Precision::f32, c.config, false)))
        << c.name;
}

// Each of many layers adds little to much: what bf16 has no bits for is lost in its stream. Of a few layers
// the rounding of their products is as much, and f16 without a scale loses small gradients.
TEST(ResidualInF32, keeps_what_deep_layers_add) {
  for (ModelConfig config : {tiny_gpt2(), tiny_llama(), tiny_gemma(), tiny_bert(), tiny_t5()}) {
    config.layers = config.kind == "t5" ? 24 : 48;
    config.decoder_layers = config.kind == "t5" ? 24 : 0;
    config.window_layers.clear();
    config.init.std = 0.05;
    complete(config);
    const Grads exact = grads_of(in(Precision::f32, config));
    const double narrow = apart(grads_of(in(Precision::bf16, config, false)), exact),
                 wide = apart(grads_of(in(Precision::bf16, config)), exact);
    EXPECT_LT(wide, 0.75 * narrow) << config.kind;
  }
}

namespace {

/// What two more layers do to memory.
Tally two_layers(const ModelConfig& config, bool wide) {
  const auto of = [&](int layers) {
    ModelConfig deep = in(Precision::bf16, config, wide);
    deep.layers = layers;
    const auto device = open_device("meta", {.threads = 1});
    TinyModel model(deep, *device);
    const Batch batch = tiny_batch(*device, deep, 2);
    (void)model.train(batch);
    Tally sum;
    for (const Tally& tally : device->work().by) {
      sum.calls += tally.calls;
      sum.bytes += tally.bytes;
    }
    return sum;
  };
  const Tally four = of(4), two = of(2);
  return {.calls = four.calls - two.calls, .bytes = four.bytes - two.bytes};
}

}  // namespace

// docs/layers.md tells so.
TEST(ResidualInF32, takes_26_bytes_of_an_element_and_layer_and_no_pass_more) {
  for (const double dropout : {0.0, 0.1})
    for (ModelConfig config : {tiny_gpt2(), tiny_llama(),
                               changed(tiny_gpt2(), [](auto& c) { c.norm_places = NormPlaces::around; })}) {
      config.hidden_dropout = dropout;
      const Tally narrow = two_layers(config, false), wide = two_layers(config, true);
      EXPECT_EQ(wide.calls, narrow.calls);
      EXPECT_EQ(wide.bytes - narrow.bytes, 26 * 2 * 2 * config.sequence * config.hidden);
    }
}
