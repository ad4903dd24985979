// How often a step waits for the GPU, which is idle from then until the host has asked for more, and by how
// many calls it has the step done.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int layers = 2, microbatches = 4;

std::uint64_t waited() { return emulated::meter().host_waits; }

/// Of one rank, in microbatches.
Cut alone(std::unique_ptr<Device> (*open)()) {
  Cut cut{{.dp = 1}, 8 / microbatches};
  cut.steps = 3;
  cut.open = open;
  return cut;
}

/// Most of those steps, as late as may be: nothing is done before somebody waits for it.
int most_waits(const ModelConfig& config, Cut cut) {
  emulated::set_pace(emulated::lazy);
  cut.waited = waited;
  if (cut.timers) return train(config, cut).most_waits;
  const emulated::Idle idle;
  return train(config, cut).most_waits;
}
int waits_of_a_step(const ModelConfig& config, OptimizerKind optimizer = OptimizerKind::adam,
                    StepTimers* timers = nullptr, QkClipConfig clip = {}) {
  Cut cut = alone(fast_gpu);
  cut.optimizer.kind = optimizer;
  cut.optimizer.qk_clip = clip;
  cut.timers = timers;
  return most_waits(config, cut);
}

// For losses, norm and counts, which decide whether and how far the weights go.
TEST(AStepOnTheGpu, waits_once) {
  for (const char* family : {"gpt2", "llama", "latent", "bert", "t5"})
    EXPECT_EQ(waits_of_a_step(shape_of(family, layers)), 1) << family;
}

// Greatest scores come with what is waited for anyway, and what follows from them is asked for.
TEST(AStepOnTheGpu, waits_once_where_weights_follow_the_greatest_scores) {
  for (const double threshold : {1e-3, 1e3})
    EXPECT_EQ(waits_of_a_step(shape_of("llama", layers), OptimizerKind::adam, nullptr,
                              {.on = true, .threshold = threshold}),
              1);
}

// A GPU that nobody waits for does nothing until the step's end, when the optimizer wants to know whether all
// is finite: by the host's clock all of a step would be that. The optimizer's last step is not over yet.
TEST(AStepOnTheGpu, is_timed_by_the_gpu_and_waits_no_more) {
  StepTimers timers(2);
  EXPECT_EQ(waits_of_a_step(shape_of("gpt2", layers), OptimizerKind::adam, &timers), 1);
  const auto of = [&](StepPart part) { return timers.of(part); };
  for (const StepPart part :
       {StepPart::forward_compute, StepPart::backward_compute, StepPart::clip, StepPart::inner_step})
    EXPECT_GT(of(part), 0) << name(part);
  EXPECT_GT(of(StepPart::backward_compute), of(StepPart::forward_compute));
  EXPECT_GT(of(StepPart::forward_compute), of(StepPart::optimizer));
  EXPECT_LE(of(StepPart::forward_compute) + of(StepPart::backward_compute), of(StepPart::forward_backward));
}

ModelConfig mixture_of_halves() {
  ModelConfig config = shape_of("mixture", layers);
  config.precision = Precision::bf16;
  return config;
}

// Products take groups of rows that the host has not seen, so it never asks how many rows an expert gets, nor
// whether any were dropped.
TEST(AStepOnTheGpu, waits_once_for_experts) {
  EXPECT_EQ(waits_of_a_step(shape_of("mixture", layers)), 1);
  EXPECT_EQ(waits_of_a_step(mixture_of_halves()), 1);
  ModelConfig config = mixture_of_halves();
  config.experts.router.capacity = 1;
  config.linear_bias = true;
  EXPECT_EQ(waits_of_a_step(config), 1);
}

// A sequence goes through the layers by itself there.
TEST(AStepOnTheGpu, waits_once_for_experts_in_exact_mode) {
  Cut cut = alone(exact_gpu);
  cut.exact = true;
  cut.steps = 1;
  cut.samples = 4;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    ModelConfig config = shape_of("mixture", layers);
    config.precision = precision;
    config.linear_bias = precision == Precision::f32;
    EXPECT_EQ(most_waits(config, cut), 1);
  }
}

// Where experts are filled up to their room nobody asks either, and calls repeat themselves.
ModelConfig filled_up(Precision precision, Fp8Format format = {}) {
  ModelConfig config = shape_of("mixture", layers);
  config.precision = precision;
  config.fp8 = {.format = format, .recipe = Fp8Recipe::delayed};
  config.hidden_dropout = config.attention_dropout = 0;
  config.experts.router.capacity = 1;
  config.experts.router.filled = true;
  return config;
}

TEST(AStepOnTheGpu, waits_once_for_experts_that_are_filled_up) {
  for (const ModelConfig& config :
       {filled_up(Precision::f32), filled_up(Precision::bf16), filled_up(Precision::bf16, Fp8Format::hybrid)})
    EXPECT_EQ(waits_of_a_step(config), 1);
}

// Products in eight bits are a call an expert.
TEST(AStepOnTheGpu, waits_for_the_counts_of_every_layer_of_experts) {
  constexpr int counts = layers * microbatches;
  ModelConfig config = mixture_of_halves();
  config.fp8 = {.format = Fp8Format::hybrid, .recipe = Fp8Recipe::delayed};
  EXPECT_EQ(waits_of_a_step(config), 1 + counts);
}

// The norm of each tensor's step decides how far it goes, and stays on the GPU.
TEST(AStepOnTheGpu, waits_no_more_for_optimizers_that_look_at_tensors_norms) {
  for (const OptimizerKind kind : {OptimizerKind::lamb, OptimizerKind::muon})
    EXPECT_EQ(waits_of_a_step(shape_of("gpt2", layers), kind), 1) << words(kind)[std::size_t(kind)];
}

/// Calls of the runtime by which the host has a step done, once graphs are known.
int calls_of_a_step(const ModelConfig& config, std::unique_ptr<Device> (*open)()) {
  Cut cut = alone(open);
  cut.steps = open == by_graphs ? 7 : 2;
  cut.waited = [] { return std::uint64_t(emulated::meter().asked); };
  const emulated::Idle idle;
  return train(config, cut).last_waits;
}

// What differs from one microbatch to the next is set anew: who drops, how far weights go, and here and there
// an address. Copies to and from the GPU are calls of their own.
TEST(AStepByGraphs, asks_the_runtime_for_a_third_as_much) {
  for (const char* name : {"gpt2", "bert"})
    EXPECT_LT(3 * calls_of_a_step(shape_of(name), by_graphs), calls_of_a_step(shape_of(name), fast_gpu))
        << name;
}

TEST(AStepByGraphs, sets_next_to_nothing_anew_where_nothing_is_dropped) {
  for (ModelConfig config : {shape_of("gpt2"), mixture_of_halves(), shape_of("mixture")}) {
    config.hidden_dropout = config.attention_dropout = 0;
    EXPECT_LT(5 * calls_of_a_step(config, by_graphs), calls_of_a_step(config, fast_gpu));
  }
}

TEST(AStepByGraphs, waits_once) {
  Cut cut = alone(by_graphs);
  cut.steps = 6;
  EXPECT_EQ(most_waits(shape_of("gpt2", layers), cut), 1);
}

}  // namespace
