// Tokens that pass layers by: how many, which, and that what is left is differentiated rightly.
#include "weft/nn/token_drop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/few_experts.h"
#include "tests/support/objective_slopes.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr float factor = 0.25;

/// Layers 1 and 2 of four see 4 of 8 tokens in step 1, 6 in step 5, and all from step 9 on.
ModelConfig dropping(ModelConfig config, const std::function<void(ModelConfig&)>& change = {}) {
  config.layers = 4;
  config.token_drop = {.layers = {1, 2}, .least = 4, .most = 8, .steps = 8, .multiple = 2};
  if (change) change(config);
  complete(config);
  return config;
}

/// Every gain, bias and position, and a random direction through everything.
void expect_gradients(const ModelConfig& config, std::uint64_t step, const Batch& batch, Device& device) {
  TinyModel model(config, device);
  (void)model.train(batch, factor, step);
  const auto loss = [&] { return model.objective(batch, factor, step); };
  expect_a_random_direction(model, loss, 5e-3);
  model.stage().each_parameter([&](Parameter& p) {
    if (p.value.rank() == 1) expect_elements(p, numbers(p.grad.sum()), loss);
  });
}

}  // namespace

TEST(TokenDrop, lets_more_tokens_in_along_deepspeeds_line) {
  const TokenDrop drop{.layers = {1}, .least = 128, .most = 2048, .steps = 200, .multiple = 16};
  EXPECT_EQ(tokens_kept(drop, 1, 2048), 128);
  EXPECT_EQ(tokens_kept(drop, 2, 2048), 128);  // 137.6
  EXPECT_EQ(tokens_kept(drop, 3, 2048), 144);  // 147.2
  EXPECT_EQ(tokens_kept(drop, 101, 2048), 1088);
  EXPECT_EQ(tokens_kept(drop, 200, 2048), 2032);  // 2038.4
  for (const std::int64_t step : {201, 202, 1'000'000'000}) EXPECT_EQ(tokens_kept(drop, step, 2048), 2048);
  EXPECT_EQ(tokens_kept(drop, 101, 1000), 1000);
}

TEST(TokenDrop, draws_ascending_places_each_as_often_as_any_other) {
  std::vector<int> seen(12);
  constexpr int draws = 6000;
  for (int sample = 0; sample < draws; ++sample) {
    const auto places = drawn_places(
        {.seed = 1, .purpose = Purpose::token_drop, .step = 3, .sample = std::uint64_t(sample)}, 12, 5);
    EXPECT_EQ(std::set(places.begin(), places.end()).size(), 5U);
    EXPECT_TRUE(std::ranges::is_sorted(places));
    for (const std::int32_t place : places) ++seen[std::size_t(place)];
  }
  const double p = 5.0 / 12, deviation = std::sqrt(draws * p * (1 - p));
  for (const int times : seen) EXPECT_NEAR(times, draws * p, 5 * deviation);
}

TEST(TokenDrop, agrees_with_differences) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  for (const bool dropout : {false, true})
    for (const ModelConfig& base : {tiny_gpt2(), tiny_llama(), tiny_latent()}) {
      const ModelConfig config = dropping(base, [&](ModelConfig& c) {
        if (dropout) c.hidden_dropout = c.attention_dropout = 0.2;
      });
      expect_gradients(config, 5, tiny_batch(*device, config, 2), *device);
    }
}

TEST(TokenDrop, agrees_with_differences_among_documents_and_padding) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  for (const ModelConfig& base : {tiny_llama(), tiny_bert()}) {
    const ModelConfig config = dropping(base);
    Batch batch = tiny_batch(*device, config, 2);
    if (config.kind == "gpt")
      batch.text.segments = from_host(*device, {2, 8},
                                      std::vector<std::int32_t>{0, 0, 0, 1, 1, 1, 1, 1,  //
                                                                0, 0, 0, 0, 0, 0, 1, 1});
    expect_gradients(config, 1, batch, *device);
  }
}

// Whom experts have room for are the tokens that the layer sees. All experts are chosen, and the first tokens
// stay, so that no choice jumps between the differences; losses of four layers are told as they count.
TEST(TokenDrop, agrees_with_differences_where_layers_have_experts) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  const RouterConfig routers[] = {{.chosen = 4, .coefficients = {0.25}, .z_loss = 0.25},
                                  {.chosen = 4,
                                   .score = RouterScore::sigmoid,
                                   .coefficients = {0.25},
                                   .capacity = 0.75,
                                   .drop = DropPolicy::position}};
  for (const RouterConfig& router : routers) {
    const ModelConfig config = dropping(with_four_experts(tiny_llama(), router));
    expect_gradients(config, 5, tiny_batch(*device, config, 2), *device);
  }
}

TEST(TokenDrop, agrees_with_differences_where_layers_look_through_a_window) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  const ModelConfig config = dropping(tiny_llama(), [](ModelConfig& c) { c.window = 3; });
  expect_gradients(config, 5, tiny_batch(*device, config, 2), *device);
}

// A window counts the tokens that a layer sees: one that is as wide as these are many hides none of them.
TEST(TokenDrop, looks_through_a_window_on_the_tokens_that_a_layer_sees) {
  const auto device = open_device("cpu", {.threads = 1});
  const auto loss = [&](std::int64_t window) {
    const ModelConfig config = dropping(tiny_llama(), [=](ModelConfig& c) {
      c.window = window;
      c.window_layers = {0, 1, 1, 0};
    });
    TinyModel model(config, *device);
    return model.objective(tiny_batch(*device, config, 2), 1, 1);  // four tokens are seen
  };
  EXPECT_EQ(loss(4), loss(8));
  EXPECT_NE(loss(3), loss(8));
}

TEST(TokenDrop, is_seen_in_training_and_only_until_all_tokens_are_let_in) {
  const auto device = open_device("cpu", {.threads = 1});
  const ModelConfig config = dropping(tiny_llama());
  ModelConfig whole = config;
  whole.token_drop = {};
  TinyModel model(config, *device), same(whole, *device);
  const Batch batch = tiny_batch(*device, config, 2);
  EXPECT_EQ(model.evaluate(batch), same.evaluate(batch));
  EXPECT_NE(model.objective(batch, 1, 8), same.objective(batch, 1, 8));
  EXPECT_EQ(model.train(batch, 1, 9), same.train(batch, 1, 9));
  EXPECT_EQ(model.grads(), same.grads());
}

// Only the losses of the first four places count.
TEST(TokenDrop, lets_no_token_see_one_behind_it) {
  const auto device = open_device("cpu", {.threads = 1});
  const ModelConfig config = dropping(tiny_llama());
  TinyModel model(config, *device);
  Batch batch = tiny_batch(*device, config, 2);
  std::vector<float> mask(16, 0);
  std::fill_n(mask.begin(), 8, 1.0F);
  batch.mask = from_host(*device, {8, 2}, mask);
  for (std::uint64_t step = 1; step <= 8; ++step) {
    const double before = model.objective(batch, 1, step);
    std::vector<std::int32_t> tokens = to_host<std::int32_t>(batch.text.tokens);
    for (std::size_t i = 8; i < tokens.size(); ++i) tokens[i] = (tokens[i] + 1) % 29;
    batch.text.tokens = from_host(*device, {8, 2}, tokens);
    EXPECT_EQ(model.objective(batch, 1, step), before);
  }
}

// A sample's tokens do not depend on whom it shares a microbatch with.
TEST(TokenDrop, chooses_by_the_sample) {
  const auto device = open_device("cpu:reference", {.threads = 1});
  const ModelConfig config = dropping(tiny_llama());
  TinyModel model(config, *device);
  const auto loss = [&](std::int64_t first, std::int64_t count) {
    return model.objective(tiny_samples(*device, config, {.step = 1, .first = first, .count = count}), 1, 3);
  };
  EXPECT_NEAR(loss(0, 3), loss(0, 1) + loss(1, 2), 1e-5);
}

TEST(TokenDrop, is_the_same_where_layers_are_computed_again) {
  ModelConfig config =
      dropping(tiny_gpt2(), [](ModelConfig& c) { c.hidden_dropout = c.attention_dropout = 0.3; });
  const auto device = open_device("cpu", {.threads = 1});
  const auto grads = [&] {
    TinyModel model(config, *device);
    (void)model.train(tiny_batch(*device, config, 2), 1, 4);
    return model.grads();
  };
  const auto plain = grads();
  config.recompute = {.what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 2};
  EXPECT_EQ(grads(), plain);
  config.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::mlp, RecomputeModule::norm}};
  EXPECT_EQ(grads(), plain);
}
