// Every derivative in a model against differences of its loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Case {
  std::string name;
  ModelConfig config;
  bool segments = false;
};

Case with(std::string name, ModelConfig config, const std::function<void(ModelConfig&)>& change = {},
          bool segments = false) {
  if (change) change(config);
  complete(config);
  return {std::move(name), config, segments};
}

std::vector<Case> cases() {
  return {
      with("gpt2", tiny_gpt2()),
      with("llama", tiny_llama()),
      with("dropout", tiny_gpt2(), [](auto& c) { c.hidden_dropout = c.attention_dropout = 0.2; }),
      with("untied", tiny_gpt2(), [](auto& c) { c.tied_output = false; }),
      with("multi_query", tiny_llama(), [](auto& c) { c.groups = 1; }),
      with("qk_norm", tiny_llama(), [](auto& c) { c.qk_norm = true; }),
      with("centered_gain", tiny_llama(), [](auto& c) { c.norm_centered_gain = true; }),
      with("part_of_channels_turns", tiny_llama(), [](auto& c) { c.rotary.percent = 0.5; }),
      with("neighbours_turn", tiny_llama(), [](auto& c) { c.rotary.interleaved = true; }),
      with("no_positions", tiny_gpt2(), [](auto& c) { c.positions = Positions::none; }),
      with("window", tiny_llama(), [](auto& c) { c.window = 3; }),
      with("documents", tiny_gpt2(), {}, true),
      with("geglu", tiny_llama(), [](auto& c) { c.activation = Activation::gelu_erf; }),
      with("squared_relu", tiny_gpt2(), [](auto& c) { c.activation = Activation::squared_relu; }),
      with("wide_heads", tiny_gpt2(), [](auto& c) { c.channels = 8; }),
      with("residual_after_norm", tiny_gpt2(), [](auto& c) { c.residual_after_norm = true; }),
      with("bert", tiny_bert()),
      with("bert_without_sentence_order", tiny_bert(), [](auto& c) { c.sentence_order = false; }),
      with("bert_untied", tiny_bert(), [](auto& c) { c.tied_output = false; }),
      with("bert_with_norms_behind", tiny_bert(), [](auto& c) { c.residual_after_norm = true; }),
      with("widths", tiny_gpt2(),
           [](auto& c) {
             c.mup = {.on = true, .base_hidden = 8, .embedding_multiplier = 3, .base_channels = 2};
           }),
      with("t5", tiny_t5()),
      with("t5_with_learned_positions", tiny_t5(), [](auto& c) { c.positions = Positions::learned; }),
      with("t5_gated", tiny_t5(),
           [](auto& c) {
             c.norm = NormKind::rms;
             c.linear_bias = c.qkv_bias = c.tied_output = false;
             c.gated = true;
             c.softmax_scale = 1;
             c.positions = Positions::rotary;
           }),
      with("t5_of_uneven_stacks", tiny_t5(),
           [](auto& c) {
             c.layers = 1;
             c.decoder_layers = 3;
             c.hidden_dropout = c.attention_dropout = 0.2;
           }),
      with("embedding_multiplier", tiny_llama(), [](auto& c) { c.embedding_multiplier = 4; }),
  };
}

class Gradient : public ::testing::TestWithParam<Case> {};

/// (f(x + h) - f(x - h)) / 2h, with x put back.
double difference(const Tensor& values, std::int64_t i, double h, const std::function<double()>& f) {
  float& x = values.as<float>()[std::size_t(i)];
  const float kept = x;
  x = float(kept + h);
  const double up = f();
  x = float(kept - h);
  const double down = f();
  x = kept;
  return (up - down) / (2 * h);
}

}  // namespace

TEST_P(Gradient, agrees_with_differences_for_every_parameter) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  const ModelConfig& config = GetParam().config;
  TinyModel model(config, *device);
  Batch batch = tiny_batch(*device, config, 2);
  if (GetParam().segments)
    batch.text.documents = from_host(*device, {2, 8},
                                     std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 1, 1,  //
                                                               0, 0, 0, 0, 0, 0, 1, 1});
  constexpr float factor = 0.25;
  (void)model.train(batch, factor);
  const auto loss = [&] { return model.objective(batch, factor); };
  model.stage().each_parameter([&](Parameter& p) {
    const auto grad = numbers(p.grad.sum());
    const double scale = std::abs(*std::ranges::max_element(grad, {}, [](double g) { return std::abs(g); }));
    // Every forty-first element: all rows and columns of every matrix are met.
    for (std::int64_t i = 0; i<p.value.elements(); i += p.value.rank()> 1 ? 41 : 7) {
      const double expected = difference(p.value, i, 5e-3, loss);
      EXPECT_NEAR(grad[std::size_t(i)], expected, 4e-3 * scale + 2e-4) << p.name << " element " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Models, Gradient, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });
