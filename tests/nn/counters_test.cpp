// The counting device against the one that computes: training a model leaves the same meters, to the byte.
#include <gtest/gtest.h>

#include "tests/support/placed.h"
#include "tests/support/tiny.h"
#include "weft/backend/cpu/device.h"
#include "weft/backend/timed.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Case {
  std::string name;
  ModelConfig config;
  int threads = 1;
  bool exact = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Case with(std::string name, ModelConfig config, const std::function<void(ModelConfig&)>& change = {}) {
  if (change) change(config);
  complete(config);
  return {std::move(name), config};
}

void in_bf16_beside_f32(ModelConfig& config) {
  config.precision = Precision::bf16;
  config.residual_in_f32 = true;
}

std::vector<Case> cases() {
  std::vector<Case> out = {
      with("gpt2", tiny_gpt2()),
      with("llama", tiny_llama()),
      with("bf16", tiny_gpt2(), [](auto& c) { c.precision = Precision::bf16; }),
      with("f16", tiny_llama(), [](auto& c) { c.precision = Precision::f16; }),
      with("dropout", tiny_gpt2(), [](auto& c) { c.hidden_dropout = c.attention_dropout = 0.2; }),
      with("untied", tiny_gpt2(), [](auto& c) { c.tied_output = false; }),
      with("multi_query", tiny_llama(), [](auto& c) { c.groups = 1; }),
      with("qk_norm", tiny_llama(), [](auto& c) { c.qk_norm = true; }),
      with("qk_norm_whole", tiny_llama(), [](auto& c) { c.qk_norm_whole = true; }),
      with("qk_norm_plain", tiny_llama(), [](auto& c) { c.qk_norm_plain = true; }),
      with("norms_around", tiny_gpt2(), [](auto& c) { c.norm_places = NormPlaces::around; }),
      with("norms_behind", tiny_llama(), [](auto& c) { c.norm_places = NormPlaces::behind; }),
      with("parallel_own_norms", tiny_gpt2(),
           [](auto& c) {
             c.parallel_sublayers = ParallelSublayers::own_norms;
             c.logits_bias = true;
           }),
      with("parallel_one_norm", tiny_llama(),
           [](auto& c) { c.parallel_sublayers = ParallelSublayers::one_norm; }),
      with("residual_multiplier", tiny_gpt2(), [](auto& c) { c.residual_multiplier = 0.5; }),
      with("centered_gain", tiny_llama(), [](auto& c) { c.norm_centered_gain = true; }),
      with("part_of_channels_turns", tiny_llama(), [](auto& c) { c.rotary.percent = 0.5; }),
      with("no_positions", tiny_gpt2(), [](auto& c) { c.positions = Positions::none; }),
      with("window", tiny_llama(), [](auto& c) { c.window = 3; }),
      with("caps", tiny_capped()),
      with("chunks_and_queries_that_grow", tiny_chunks()),
      with("scores_that_fall", tiny_falling()),
      with("geglu", tiny_llama(), [](auto& c) { c.activation = Activation::gelu_erf; }),
      with("squared_relu", tiny_gpt2(), [](auto& c) { c.activation = Activation::squared_relu; }),
      with("wide_heads", tiny_gpt2(), [](auto& c) { c.channels = 8; }),
      with("recompute", tiny_gpt2(), [](auto& c) { c.recompute = {.what = Recompute::full}; }),
      with("latent", tiny_latent()),
      with("further_tokens", tiny_ahead(tiny_gpt2())),
      with("experts_beside_an_mlp", tiny_mixture(),
           [](auto& c) {
             c.experts.shared_hidden = 0;
             c.experts.shared_gate = false;
             c.experts.residual = true;
           }),
      with("further_tokens_through_one_layer", tiny_ahead(tiny_llama()),
           [](auto& c) { c.ahead.repeated = true; }),
      with("further_tokens_recomputed", tiny_ahead(tiny_latent()),
           [](auto& c) { c.recompute = {.what = Recompute::full}; }),
      with("recompute_latent_heads", tiny_latent(),
           [](auto& c) {
             c.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::latent_heads}};
           }),
      with("recompute_mlp", tiny_llama(),
           [](auto& c) { c.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::mlp}}; }),
  };
  out.push_back(with("three_threads", tiny_gpt2(), [](auto& c) { c.hidden_dropout = 0.1; }));
  out.back().threads = 3;
  out.push_back(with("qk_norm_each", tiny_command_plus()));
  out.push_back(with("bare_and_limited", tiny_bare()));
  out.push_back(with("exact", tiny_llama(), [](auto& c) { c.exact = true; }));
  out.back().exact = true;
  return out;
}

std::vector<Case> residuals_in_f32() {
  return {
      with("residual_in_f32", tiny_gpt2(), in_bf16_beside_f32),
      with("residual_in_f32_and_dropout", tiny_llama(),
           [](auto& c) {
             in_bf16_beside_f32(c);
             c.hidden_dropout = 0.2;
           }),
      with("residual_in_f32_and_norms_behind", tiny_llama(),
           [](auto& c) {
             in_bf16_beside_f32(c);
             c.norm_places = NormPlaces::behind;
           }),
      with("residual_in_f32_of_norms", tiny_t5(),
           [](auto& c) {
             in_bf16_beside_f32(c);
             c.residual_after_norm = true;
           }),
      with("residual_in_f32_and_further_tokens", tiny_ahead(tiny_gpt2()), in_bf16_beside_f32),
  };
}

struct Meters {
  MemoryMeter memory;
  WorkMeter work;
};

/// Two steps: the second finds the pool as the first left it.
Meters of_training(const Case& c, std::string_view name) {
  const auto device = open_device(name, {.threads = c.threads, .exact = c.exact});
  TinyModel model(c.config, *device);
  for (int step = 1; step <= 2; ++step)
    (void)model.train(tiny_batch(*device, c.config, 2), 1, std::uint64_t(step));
  return {device->memory(), device->work()};
}

class Counters : public ::testing::TestWithParam<Case> {};

TEST_P(Counters, are_those_of_the_device_that_computes) {
  const Meters counted = of_training(GetParam(), "meta");
  const Meters real = of_training(GetParam(), "cpu");
  EXPECT_EQ(counted.memory.now, real.memory.now);
  EXPECT_EQ(counted.memory.peak, real.memory.peak);
  EXPECT_EQ(counted.memory.total_peak, real.memory.total_peak);
  EXPECT_EQ(counted.memory.fresh_blocks, real.memory.fresh_blocks);
  for (int i = 0; i < works; ++i)
    EXPECT_TRUE(counted.work.by[std::size_t(i)] == real.work.by[std::size_t(i)]) << weft::name(Work(i));
  EXPECT_GT(real.memory.peak[std::size_t(Use::activations)], 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Counters, ::testing::ValuesIn(cases()),
                         [](const auto& model) { return model.param.name; });

INSTANTIATE_TEST_SUITE_P(Residuals, Counters, ::testing::ValuesIn(residuals_in_f32()),
                         [](const auto& model) { return model.param.name; });

// What takes time is found where it is spent, and looking changes no bit.
TEST(TimedKernels, give_the_same_numbers_and_say_what_took_time) {
  ModelConfig config = tiny_gpt2();
  config.hidden_dropout = config.attention_dropout = 0.1;
  WorkTimes times;
  std::array<std::map<std::string, std::vector<double>>, 2> grads;
  for (int i = 0; i < 2; ++i) {
    CpuDevice device({.threads = 1, .times = i == 0 ? nullptr : &times});
    TinyModel model(config, device);
    (void)model.train(tiny_batch(device, config, 2));
    grads[std::size_t(i)] = model.grads();
  }
  EXPECT_EQ(grads[0], grads[1]);
  for (const Work work :
       {Work::product, Work::attention, Work::norm, Work::elementwise, Work::loss, Work::embedding}) {
    EXPECT_GT(times.calls[std::size_t(work)], 0) << name(work);
    EXPECT_GT(times.spent[std::size_t(work)].seconds(), 0) << name(work);
  }
  EXPECT_GT(times.total(), times.spent[std::size_t(Work::product)].seconds());
}

}  // namespace
