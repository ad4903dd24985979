// A training step in the steady state asks neither the heap nor the system for memory.
#include <gtest/gtest.h>

#include "tests/backend/heap.h"
#include "tests/support/tiny.h"
#include "tests/train/tiny_run.h"
#include "weft/mesh/mesh.h"
#include "weft/train/replica.h"

namespace weft {
namespace {

using namespace weft::testing;

class OneRank {
 public:
  explicit OneRank(const ModelConfig& config, const OptimizerConfig& optimizer = {})
      : replica_({.model = config, .optimizer = optimizer}, {*device_, mesh_}) {
    batches_ = {tiny_batch(*device_, config, 2), tiny_batch(*device_, config, 2)};
  }
  void step(int number) {
    (void)replica_.step(
        batches_, {.seed = 3, .step = number, .rate = 1e-3, .ends_rate = 1e-3, .decay = 0.01, .clip = 1});
  }
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Replica replica_;
  std::vector<Batch> batches_;
};

struct Asked {
  std::int64_t heap, system;
};
Asked asked_by_steps_3_to_6(const ModelConfig& config, const OptimizerConfig& optimizer = {}) {
  OneRank rank(config, optimizer);
  for (int step = 1; step <= 2; ++step) rank.step(step);
  const Asked before{heap_calls(), rank.device().memory().fresh_blocks};
  for (int step = 3; step <= 6; ++step) rank.step(step);
  return {heap_calls() - before.heap, rank.device().memory().fresh_blocks - before.system};
}

class SteadyStep : public ::testing::TestWithParam<Precision> {};

TEST_P(SteadyStep, of_a_gpt2_asks_for_no_memory) {
  ModelConfig config = tiny_gpt2();
  config.precision = GetParam();
  config.hidden_dropout = config.attention_dropout = 0.1;
  const Asked asked = asked_by_steps_3_to_6(config);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

TEST_P(SteadyStep, of_a_llama_that_recomputes_asks_for_no_memory) {
  ModelConfig config = tiny_llama();
  config.precision = GetParam();
  config.recompute.what = Recompute::full;
  const Asked asked = asked_by_steps_3_to_6(config);
  EXPECT_EQ(asked.heap, 0);
  EXPECT_EQ(asked.system, 0);
}

TEST(SteadyStep, of_every_optimizer_asks_for_no_memory) {
  const OptimizerConfig all[] = {
      {.kind = OptimizerKind::sgd},
      {.kind = OptimizerKind::lion},
      {.kind = OptimizerKind::lamb},
      {.kind = OptimizerKind::muon},
      {.kind = OptimizerKind::onebitadam, .onebit = {.freeze = 2}},
      {.any_moment_type = true, .first_moment = MomentType::fp8, .second_moment = MomentType::bf16}};
  for (const OptimizerConfig& optimizer : all) {
    const Asked asked = asked_by_steps_3_to_6(tiny_gpt2(), optimizer);
    EXPECT_EQ(asked.heap, 0) << words(optimizer.kind)[std::size_t(optimizer.kind)];
    EXPECT_EQ(asked.system, 0) << words(optimizer.kind)[std::size_t(optimizer.kind)];
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
