// A training step in the steady state asks neither the heap nor the system for memory.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "tests/backend/heap.h"
#include "tests/support/temporary.h"
#include "tests/support/tiny.h"
#include "tests/train/tiny_run.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/train/replica.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

using namespace weft::testing;

TrainConfig settings_of(const ModelConfig& model, const OptimizerConfig& optimizer,
                        const ParallelConfig& parallel) {
  TrainConfig out;
  out.model = model;
  out.optimizer = optimizer;
  out.optimizer.clip = 1;
  out.parallel = parallel;
  out.batch.micro = 2;
  out.run.seed = 3;
  return out;
}

StepOrder order_of(const TrainConfig& settings, int step, double rate) {
  StepOrder order = step_order(settings);
  order.step = step;
  order.rate = order.ends_rate = rate;
  order.width_rate = rate * width_factor(settings);
  order.decay = 0.01;
  return order;
}

class Rank {
 public:
  Rank(const ModelConfig& config, Communicator& world, const OptimizerConfig& optimizer = {},
       bool beside = false)
      : settings_(settings_of(config, optimizer,
                              {.dp = world.size(),
                               .ep = world.size(),
                               .etp = 1,
                               .overlap_experts = beside,
                               .delay_weight_grads = beside})),
        mesh_(layout_of(settings_.parallel), world),
        replica_(replica_config(settings_), {*device_, mesh_}) {
    for (int step = 0; step < 2; ++step)
      for (int first = 0; first < 4; first += 2)
        batches_[std::size_t(step)].push_back(
            tiny_samples(*device_, config, {.step = step, .first = 4 * world.rank() + first, .count = 2}));
  }
  void step(int number) { go(number, batches_[1], 1e-3); }
  /// Nothing is learned, and samples come in turn: so do the loads of experts, another one at every step.
  void step_in_turn(int number) { go(number, batches_[std::size_t(number % 2)], 0); }
  void step_on(int number, std::span<const Batch> batches) { go(number, batches, 1e-3); }
  Device& device() { return *device_; }

 private:
  void go(int number, std::span<const Batch> batches, double rate) {
    (void)replica_.step(batches, order_of(settings_, number, rate));
  }
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  TrainConfig settings_;
  ProcessMesh mesh_;
  Replica replica_;
  std::array<std::vector<Batch>, 2> batches_;
};

struct Allocations {
  std::int64_t heap, system;
};
Allocations asked_by_steps_3_to_6(const ModelConfig& config, const OptimizerConfig& optimizer = {}) {
  SoloCommunicator solo;
  Rank rank(config, solo, optimizer);
  for (int step = 1; step <= 2; ++step) rank.step(step);
  const Allocations before{heap_calls(), rank.device().memory().fresh_blocks};
  for (int step = 3; step <= 6; ++step) rank.step(step);
  return {heap_calls() - before.heap, rank.device().memory().fresh_blocks - before.system};
}

class SteadyStep : public ::testing::TestWithParam<Precision> {};

TEST_P(SteadyStep, of_a_gpt2_asks_for_no_memory) {
  ModelConfig config = tiny_gpt2();
  config.precision = GetParam();
  config.hidden_dropout = config.attention_dropout = 0.1;
  const Allocations asked = asked_by_steps_3_to_6(config);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

TEST_P(SteadyStep, with_a_residual_stream_in_f32_asks_for_no_memory) {
  for (const double dropout : {0.0, 0.1}) {
    ModelConfig config = tiny_gpt2();
    config.precision = GetParam();
    config.residual_in_f32 = true;
    config.hidden_dropout = dropout;
    const Allocations asked = asked_by_steps_3_to_6(config);
    EXPECT_EQ(asked.heap, 0);
    EXPECT_EQ(asked.system, 0);
  }
}

TEST_P(SteadyStep, of_a_llama_that_recomputes_asks_for_no_memory) {
  ModelConfig config = tiny_llama();
  config.precision = GetParam();
  config.recompute.what = Recompute::full;
  const Allocations asked = asked_by_steps_3_to_6(config);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

// Which rows an expert gets changes with every step; their number does not where none is dropped.
TEST_P(SteadyStep, of_a_mixture_of_experts_asks_for_no_memory) {
  ModelConfig config = tiny_mixture();
  config.precision = GetParam();
  const Allocations asked = asked_by_steps_3_to_6(config);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

// A length is a shape: what its first step has asked for is there when it comes again.
TEST(SteadyStep, of_samples_that_grow_asks_for_no_memory_after_the_first_of_each_length) {
  const ModelConfig config = tiny_gpt2();
  ModelConfig shorter = config;
  shorter.sequence = 4;
  SoloCommunicator solo;
  Rank rank(config, solo);
  std::vector<Batch> front;
  for (const int first : {0, 2})
    front.push_back(tiny_samples(rank.device(), shorter, {.step = 1, .first = first, .count = 2}));
  std::int64_t heap = 0, system = 0;
  for (int step = 1; step <= 8; ++step) {
    if (step == 5) heap = heap_calls(), system = rank.device().memory().fresh_blocks;
    rank.step_on(step, front);
    rank.step(step);
  }
  EXPECT_EQ(heap_calls() - heap, 0);
  EXPECT_EQ(rank.device().memory().fresh_blocks - system, 0);
}

/// By ranks that share experts out, together, in twenty steps whose loads change.
Allocations asked_under_changing_loads(ModelConfig config, int ranks, bool beside = false) {
  constexpr int first = 9, last = 28;
  config.experts.router.bias_rate = 0;
  std::atomic<std::int64_t> system = 0;
  std::int64_t heap = 0;
  run_as_threads(ranks, [&](Communicator& world) {
    Rank rank(config, world, {}, beside);
    for (int step = 1; step < first; ++step) rank.step_in_turn(step);
    world.barrier();
    const std::int64_t before = rank.device().memory().fresh_blocks, heap_before = heap_calls();
    world.barrier();
    for (int step = first; step <= last; ++step) rank.step_in_turn(step);
    world.barrier();
    if (world.rank() == 0) heap = heap_calls() - heap_before;
    system += rank.device().memory().fresh_blocks - before;
    world.barrier();
  });
  return {heap, system};
}

TEST(SteadyStep, of_ranks_that_share_experts_asks_for_no_memory) {
  const Allocations asked = asked_under_changing_loads(tiny_mixture(), 2);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

TEST(SteadyStep, of_forwards_beside_backwards_asks_for_no_memory) {
  const Allocations asked = asked_under_changing_loads(tiny_mixture(), 2, true);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

TEST(SteadyStep, of_experts_with_little_room_asks_for_no_memory) {
  ModelConfig config = tiny_mixture();
  config.experts.router.capacity = 0.7;
  const Allocations asked = asked_under_changing_loads(config, 1);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

TEST(SteadyStep, of_every_optimizer_asks_for_no_memory) {
  const OptimizerConfig all[] = {
      {.kind = OptimizerKind::sgd},
      {.kind = OptimizerKind::lion},
      {.kind = OptimizerKind::lamb},
      {.kind = OptimizerKind::muon},
      {.kind = OptimizerKind::muon, .muon = {.others = MuonOthers::lion}},
      {.kind = OptimizerKind::onebitadam, .onebit = {.freeze = 2}},
      {.kind = OptimizerKind::zerooneadam,
       .zeroone = {.freeze = 2, .variance_steps = 1, .local_steps = 1, .most_local = 2}},
      {.kind = OptimizerKind::onebitlamb, .onebit = {.freeze = 2}},
      {.any_moment_type = true, .first_moment = MomentType::fp8, .second_moment = MomentType::bf16},
      {.qk_clip = {.on = true, .threshold = 1e-3}}};
  for (const OptimizerConfig& optimizer : all) {
    const Allocations asked = asked_by_steps_3_to_6(tiny_gpt2(), optimizer);
    EXPECT_EQ(asked.heap, 0) << words(optimizer.kind)[std::size_t(optimizer.kind)];
    EXPECT_EQ(asked.system, 0) << words(optimizer.kind)[std::size_t(optimizer.kind)];
  }
}

// What layers need for a moment comes from the pool and goes back to it.
TEST(SteadyStep, of_ranks_that_cut_gradients_and_weights_asks_the_system_for_no_memory) {
  for (const int zero : {2, 3})
    run_as_threads(2, [&](Communicator& world) {
      const auto device = open_device("cpu", {.threads = 1});
      const TrainConfig settings = settings_of(tiny_gpt2(), {}, {.dp = 2, .zero = zero});
      const ProcessMesh mesh(layout_of(settings.parallel), world);
      Replica replica(replica_config(settings), {*device, mesh});
      const std::vector<Batch> batches(2, tiny_batch(*device, settings.model, 2));
      std::int64_t before = 0;
      for (int step = 1; step <= 6; ++step) {
        if (step == 3) before = device->memory().fresh_blocks;
        (void)replica.step(batches, order_of(settings, step, 1e-3));
      }
      EXPECT_EQ(device->memory().fresh_blocks, before) << "stage " << zero;
    });
}

// Threads read and write what the step updates, and read what layers do; none asks for anything.
TEST(SteadyStep, with_states_in_a_file_asks_for_no_memory) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    ModelConfig config = tiny_gpt2();
    config.precision = precision;
    for (const bool weights : {false, true}) {
      OptimizerConfig optimizer;
      optimizer.offload = {.on = true, .directory = folder.path(), .weights = weights};
      const Allocations asked = asked_by_steps_3_to_6(config, optimizer);
      EXPECT_EQ(asked.heap, 0) << weights;
      EXPECT_EQ(asked.system, 0) << weights;
    }
  }
}

std::int64_t asked_by_a_run_of(std::int64_t steps) {
  TrainConfig config = tiny_run();
  config.length.iterations = steps;
  config.eval.iterations = 0;
  config.log.interval = 1000;  // a line of the log is text, which the heap holds
  const std::int64_t before = heap_calls();
  (void)train(completed(config));
  return heap_calls() - before;
}

// From the sample to the weights: reading ahead, microbatches, the step, what ranks agree on behind it.
TEST(SteadyRun, asks_the_heap_for_no_more_the_longer_it_is) {
  (void)asked_by_a_run_of(10);
  EXPECT_EQ(asked_by_a_run_of(40), asked_by_a_run_of(20));
}

INSTANTIATE_TEST_SUITE_P(Precisions, SteadyStep, ::testing::Values(Precision::f32, Precision::bf16));

}  // namespace
}  // namespace weft
