// Layers that steps leave out: how often, and that what is left is differentiated rightly.
#include "weft/nn/layer_drop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/few_experts.h"
#include "tests/support/gradient.h"
#include "tests/support/objective_slopes.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Half of the draws of the last of eight layers leave it out soon.
constexpr LayerDrop soon{.theta = 0.5, .gamma = 1};
constexpr int many = 20'000;

ModelConfig dropping(const std::function<void(ModelConfig&)>& change = {}) {
  ModelConfig config = tiny_gpt2();
  config.layers = 4;
  config.layer_drop = {.theta = 0.2, .gamma = 1};
  if (change) change(config);
  complete(config);
  return config;
}

/// The first step that leaves out some layers behind the first, and not all.
std::int64_t step_with_some(const LayerDrop& drop, int layers) {
  for (std::int64_t step = 10;; ++step)
    if (const int kept = layers_kept(drop, 5, step, layers); kept > 1 && kept < layers) return step;
}

}  // namespace

TEST(LayerDrop, keeps_layers_the_less_the_deeper_they_stand_and_the_later_it_is) {
  const LayerDrop drop{.theta = 0.5, .gamma = 0.01};
  for (const std::int64_t step : {1, 2})
    for (const int layer : {0, 7}) EXPECT_EQ(chance_to_stay(drop, step, {layer, 8}), 1);
  const double theta = 0.5 * std::exp(-0.01 * 100) + 0.5;
  for (int layer = 0; layer < 8; ++layer)
    EXPECT_DOUBLE_EQ(chance_to_stay(drop, 102, {layer, 8}), 1 - layer / 8.0 * (1 - theta));
  EXPECT_NEAR(chance_to_stay(drop, many, {7, 8}), 1 - 7.0 / 8 * 0.5, 1e-12);
}

// Means of n draws of a kept layer's weight have a deviation of sqrt((1 / p - 1) / n).
TEST(LayerDrop, leaves_out_as_many_draws_as_it_says_and_adds_as_much_on_average) {
  for (const int layer : {0, 3, 7}) {
    const double p = chance_to_stay(soon, 100, {layer, 8});
    int kept = 0;
    double sum = 0;
    for (int step = 100; step < 100 + many; ++step) {
      const double weight = weight_of_layer(soon, 3, step, {layer, 8});
      kept += int(weight > 0);
      sum += weight;
    }
    EXPECT_NEAR(double(kept) / many, p, 5 * std::sqrt(p * (1 - p) / many)) << layer;
    EXPECT_NEAR(sum / many, 1, 5 * std::sqrt((1 / p - 1) / many)) << layer;
  }
}

TEST(LayerDrop, draws_anew_for_every_seed_step_and_layer) {
  const auto draws = [](std::uint64_t seed, std::int64_t step, int layers) {
    std::vector<bool> out;
    for (int layer = 1; layer < layers; ++layer)
      out.push_back(weight_of_layer({.theta = 0, .gamma = 1}, seed, step, {layer, layers}) > 0);
    return out;
  };
  EXPECT_EQ(draws(1, 50, 64), draws(1, 50, 64));
  EXPECT_NE(draws(1, 50, 64), draws(2, 50, 64));
  EXPECT_NE(draws(1, 50, 64), draws(1, 51, 64));
}

TEST(LayerDrop, counts_the_layers_of_a_step) {
  double kept = 0;
  for (int step = 100; step < 2100; ++step) kept += layers_kept(soon, 1, step, 8);
  double expected = 0;
  for (int layer = 0; layer < 8; ++layer) expected += chance_to_stay(soon, 100, {layer, 8});
  EXPECT_NEAR(kept / 2000, expected, 0.15);
  EXPECT_EQ(layers_kept(soon, 1, 2, 8), 8);
}

TEST(LayerDrop, gives_no_gradient_to_what_is_left_out_and_all_of_it_to_what_is_kept) {
  for (const double dropout : {0.0, 0.2})
    for (const bool rotary : {false, true}) {
      const ModelConfig config = dropping([&](ModelConfig& c) {
        c.hidden_dropout = c.attention_dropout = dropout;
        if (rotary) c.norm = NormKind::rms, c.positions = Positions::rotary, c.linear_bias = false;
      });
      const std::int64_t step = step_with_some(config.layer_drop, config.layers);
      const auto device = open_device("cpu:reference", {.threads = 1});
      TinyModel model(config, *device);
      const Batch batch = tiny_batch(*device, config, 2);
      constexpr float factor = 0.25;
      (void)model.train(batch, factor, std::uint64_t(step));
      const auto loss = [&] { return model.objective(batch, factor, std::uint64_t(step)); };
      int left_out = 0;
      model.stage().each_parameter([&](Parameter& p) {
        const std::vector<double> grad = numbers(p.grad.sum());
        if (p.name.starts_with("layers.")) {
          const LayerPlace at{p.name[7] - '0', config.layers};
          const bool kept = weight_of_layer(config.layer_drop, 5, step, at) > 0;
          left_out += int(!kept);
          EXPECT_EQ(std::ranges::all_of(grad, [](double g) { return g == 0; }), !kept) << p.name;
          if (!kept) return;
        }
        if (p.value.rank() == 1)  // of every kind: gains, and biases that are added weighed
          expect_elements(p, grad, loss);
      });
      EXPECT_GT(left_out, 0);
    }
}

namespace {

void expect_the_slope_along_a_random_direction(const ModelConfig& config) {
  const std::int64_t step = step_with_some(config.layer_drop, config.layers);
  const auto device = open_device("cpu:reference", {.threads = 1});
  TinyModel model(config, *device);
  const Batch batch = tiny_batch(*device, config, 2);
  (void)model.train(batch, 0.25, std::uint64_t(step));
  expect_a_random_direction(model, [&] { return model.objective(batch, 0.25, std::uint64_t(step)); });
}

/// All are chosen, so that no choice jumps between two differences. Losses of four layers are told as they
/// count in the objective.
void with_experts(ModelConfig& c) {
  c.linear_bias = c.qkv_bias = false;
  c = with_four_experts(c, {.chosen = 4,
                            .balancing = {Balancing::aux_loss, Balancing::seq_aux_loss},
                            .coefficients = {0.25},
                            .z_loss = 0.25});
}

}  // namespace

TEST(LayerDrop, agrees_with_differences_along_a_random_direction_of_all_matrices) {
  expect_the_slope_along_a_random_direction(dropping());
  expect_the_slope_along_a_random_direction(dropping([](ModelConfig& c) { c.residual_after_norm = true; }));
  expect_the_slope_along_a_random_direction(dropping(with_experts));
}

// Norms are what such blocks add to: they stay, and learn.
TEST(LayerDrop, leaves_the_norms_of_a_layer_whose_residual_is_what_they_give) {
  const ModelConfig config = dropping([](ModelConfig& c) { c.residual_after_norm = true; });
  const std::int64_t step = step_with_some(config.layer_drop, config.layers);
  const auto device = open_device("cpu:reference", {.threads = 1});
  TinyModel model(config, *device);
  const Batch batch = tiny_batch(*device, config, 2);
  (void)model.train(batch, 0.25, std::uint64_t(step));
  const auto loss = [&] { return model.objective(batch, 0.25, std::uint64_t(step)); };
  int norms = 0;
  model.stage().each_parameter([&](Parameter& p) {
    if (!p.name.starts_with("layers.")) return;
    const LayerPlace at{p.name[7] - '0', config.layers};
    if (weight_of_layer(config.layer_drop, 5, step, at) > 0) return;
    const std::vector<double> grad = numbers(p.grad.sum());
    const bool norm = p.name.find("norm") != std::string::npos;
    norms += int(norm);
    EXPECT_EQ(std::ranges::all_of(grad, [](double g) { return g == 0; }), !norm) << p.name;
    if (!norm) return;
    const std::vector<double> expected = slopes(p.value, loss);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(grad[i], expected[i], 4e-3) << p.name << " element " << i;
  });
  EXPECT_GT(norms, 0);
}

// What a layer that is kept adds to the objective counts 1 / p times, its balancing losses too, so that their
// mean over many steps is what they are without it.
TEST(LayerDrop, tells_balancing_losses_of_a_layer_as_often_as_what_it_adds) {
  const auto device = open_device("cpu", {.threads = 1});
  const auto mean = [&](const LayerDrop& drop, std::uint64_t steps) {
    const ModelConfig config = dropping([&](ModelConfig& c) {
      with_experts(c);
      c.experts.layers = {0, 0, 0, 1};
      c.layer_drop = drop;
      c.init.std = 0;  // all experts are alike, and their loss is one number whatever comes in
    });
    TinyModel model(config, *device);
    const Batch batch = tiny_batch(*device, config, 2);
    double sum = 0;
    for (std::uint64_t step = 100; step < 100 + steps; ++step) sum += model.objective(batch, 1, step);
    return sum / double(steps);
  };
  ModelConfig bare = dropping([](ModelConfig& c) { c.init.std = 0; });
  TinyModel model(bare, *device);
  const double words = model.objective(tiny_batch(*device, bare, 2), 1, 1);
  const double whole = mean({}, 1) - words, dropped = mean({.theta = 0.5, .gamma = 1}, 2000) - words;
  EXPECT_GT(whole, 0.1);
  EXPECT_NEAR(dropped, whole, 5 * whole * std::sqrt((1 / 0.625 - 1) / 2000));
}

TEST(LayerDrop, is_the_same_where_layers_are_computed_again) {
  ModelConfig config = dropping([](ModelConfig& c) { c.hidden_dropout = c.attention_dropout = 0.3; });
  const std::int64_t step = step_with_some(config.layer_drop, config.layers);
  const auto device = open_device("cpu", {.threads = 1});
  const auto grads = [&] {
    TinyModel model(config, *device);
    (void)model.train(tiny_batch(*device, config, 2), 1, std::uint64_t(step));
    return model.grads();
  };
  const auto plain = grads();
  config.recompute = {.what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 2};
  EXPECT_EQ(grads(), plain);
}

TEST(LayerDrop, leaves_no_layer_out_where_nobody_trains_and_none_of_further_tokens) {
  const ModelConfig config = dropping();
  ModelConfig whole = config;
  whole.layer_drop = {};
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device), same(whole, *device);
  const Batch batch = tiny_batch(*device, config, 2);
  EXPECT_EQ(model.evaluate(batch), same.evaluate(batch));
  EXPECT_NE(model.objective(batch, 1, 50), same.objective(batch, 1, 50));
  const ModelConfig ahead = [] {
    ModelConfig c = tiny_ahead(tiny_gpt2());
    c.layer_drop = {.theta = 0, .gamma = 50};
    complete(c);
    return c;
  }();
  TinyModel further(ahead, *device);
  for (std::uint64_t step = 3; step < 20; ++step) (void)further.train(tiny_batch(*device, ahead, 2), 1, step);
  for (const auto& [name, grad] : further.grads()) {
    if (!name.starts_with("ahead.")) continue;
    EXPECT_NE(grad, std::vector<double>(grad.size())) << name;
  }
}
