// Gradients added in buckets, during backward, and with states cut over ranks: the bits of the plain sum.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/train/replica.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::int64_t global_batch = 8;

struct How {
  ParallelLayout::Degrees degrees;
  bool sequence = false;
  int zero = 0;
  bool once = false;  // where gradients are cut: as ZeRO-1 adds them
  ReduceWhen when = ReduceWhen::after_backward;
  std::int64_t bucket = 0;
  bool sgd = false;
  int steps = rounds(6);
};

/// Everything that a run leaves behind on rank 0, and what each rank held.
struct Outcome {
  std::vector<double> losses, norms, params_norms;
  std::vector<std::int64_t> zeros;
  std::map<std::string, std::vector<double>> values;
  std::map<int, std::int64_t> optimizer_bytes;  // by rank
  std::vector<int> left_early;                  // by step
};

std::vector<Batch> batches_of(Device& device, const ModelConfig& config, const How& how, int rank, int step) {
  std::vector<Batch> out;
  const std::int64_t per_rank = global_batch / how.degrees.dp;
  for (std::int64_t i = 0; i < per_rank; ++i)
    out.push_back(tiny_rows(device, config, {.step = step, .first = rank * per_rank + i, .count = 1}));
  return out;
}

void note(Outcome& outcome, const StepReport& report, const GradReduction& reduction) {
  outcome.losses.push_back(report.loss());
  outcome.norms.push_back(report.grad_norm);
  outcome.params_norms.push_back(*report.params_norm);
  outcome.zeros.push_back(*report.zeros);
  outcome.left_early.push_back(reduction.left_early());
}

TrainConfig settings_of(const ModelConfig& config, const How& how) {
  TrainConfig out;
  out.model = config;
  out.run.seed = 7;
  out.batch.micro = 1;
  out.log = {.params_norm = true, .zeros = true};
  out.parallel = {.tp = how.degrees.tp,
                  .dp = how.degrees.dp,
                  .sequence = how.sequence,
                  .zero = how.zero,
                  .overlap_reduce = how.when == ReduceWhen::when_a_bucket_is_full,
                  .reduce_once = how.once,
                  .bucket_elements = how.bucket};
  out.scaling.constant = 1;  // f16 as the others
  if (how.sgd) out.optimizer.kind = OptimizerKind::sgd;
  return out;
}

StepOrder order_of(const TrainConfig& settings, int step) {
  StepOrder order = step_order(settings);
  order.seed = 3;  // as the other layouts' (run.cpp)
  order.step = step;
  order.rate = order.width_rate = 5e-3;
  order.ends_rate = 4e-3;
  order.decay = 0.01;
  return order;
}

void run_rank(const ModelConfig& config, const How& how, const ProcessMesh& mesh, Outcome& outcome,
              std::mutex& mutex) {
  const auto device = open_device("cpu", {.threads = 1});
  const TrainConfig settings = settings_of(config, how);
  Replica replica(replica_config(settings), {*device, mesh});
  const bool tells = mesh.world().rank() == 0;
  for (int step = 1; step <= how.steps; ++step) {
    const auto batches = batches_of(*device, config, how, mesh.place(Axis::dp), step);
    const StepReport report = replica.step(batches, order_of(settings, step));
    if (tells) note(outcome, report, replica.reduction());
  }
  std::map<std::string, std::vector<double>> values;
  replica.each_value([&](Parameter& p) { values[p.name] = numbers(p.value); });
  const std::lock_guard lock(mutex);
  outcome.optimizer_bytes[mesh.world().rank()] = device->memory().now[std::size_t(Use::optimizer)];
  if (tells) outcome.values = std::move(values);
}

Outcome outcome_of(const ModelConfig& config, const How& how) {
  Outcome outcome;
  std::mutex mutex;
  const ParallelLayout layout = layout_of(settings_of(config, how).parallel);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const ProcessMesh mesh(layout, world);
    run_rank(config, how, mesh, outcome, mutex);
  });
  return outcome;
}

ModelConfig model_of(const std::string& name, Precision precision = Precision::f32, int groups = 0) {
  ModelConfig config = name == "gpt2" ? tiny_gpt2() : tiny_llama();
  if (groups > 0) config.groups = groups;
  config.hidden_dropout = config.attention_dropout = 0.1;
  config.precision = precision;
  complete(config);
  return config;
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  EXPECT_EQ(a.params_norms, b.params_norms);
  EXPECT_EQ(a.zeros, b.zeros);
  EXPECT_EQ(a.values, b.values);
}

struct Case {
  std::string name, model;
  How plain;
  Precision precision = Precision::f32;
  int groups = 0;  // of heads that share a key; 0: the model's own
};

class DataParallelSums : public ::testing::TestWithParam<Case> {};

std::vector<Case> cases() {
  std::vector<Case> out{{"gpt2_dp2", "gpt2", {.degrees = {.dp = 2}}},
                        {"gpt2_dp4", "gpt2", {.degrees = {.dp = 4}}},
                        {"gpt2_dp8", "gpt2", {.degrees = {.dp = 8}}},
                        {"llama_dp4", "llama", {.degrees = {.dp = 4}}},
                        {"gpt2_tp2_dp2", "gpt2", {.degrees = {.tp = 2, .dp = 2}}},
                        {"llama_tp2_dp2_sp", "llama", {.degrees = {.tp = 2, .dp = 2}, .sequence = true}},
                        {"gpt2_bf16_dp2", "gpt2", {.degrees = {.dp = 2}}, Precision::bf16},
                        {"llama_f16_tp2_dp2", "llama", {.degrees = {.tp = 2, .dp = 2}}, Precision::f16},
                        {"gpt2_sgd_dp4", "gpt2", {.degrees = {.dp = 4}}}};
  out.back().plain.sgd = true;
  const How sharing{.degrees = {.tp = 4, .dp = 2}, .sequence = true};
  out.push_back({"gpt2_tp4_dp2_sp_a_key_for_all", "gpt2", sharing, Precision::f32, 1});
  out.push_back({"llama_tp4_dp2_sp_a_key_for_two", "llama", sharing, Precision::bf16, 2});
  return out;
}

}  // namespace

TEST_P(DataParallelSums, are_the_same_bits_in_buckets_that_leave_during_backward) {
  const Case& c = GetParam();
  const ModelConfig config = model_of(c.model, c.precision, c.groups);
  How overlapped = c.plain;
  overlapped.when = ReduceWhen::when_a_bucket_is_full;
  overlapped.bucket = 500;
  const Outcome early = outcome_of(config, overlapped);
  expect_same_bits(early, outcome_of(config, c.plain));
  EXPECT_EQ(early.left_early.front(), 0) << "how often a gradient comes is learned in the first step";
  EXPECT_GE(early.left_early.back(), 4) << "a bucket for each layer and the embedding, of one kind at least";
}

TEST_P(DataParallelSums, are_the_same_bits_where_states_are_cut) {
  const Case& c = GetParam();
  const ModelConfig config = model_of(c.model, c.precision, c.groups);
  const Outcome plain = outcome_of(config, c.plain);
  How cut = c.plain;
  cut.zero = 1;
  expect_same_bits(outcome_of(config, cut), plain);
  cut.when = ReduceWhen::when_a_bucket_is_full;
  cut.bucket = 700;
  expect_same_bits(outcome_of(config, cut), plain);
}

TEST_P(DataParallelSums, are_the_same_bits_where_gradients_and_weights_are_cut) {
  const Case& c = GetParam();
  const ModelConfig config = model_of(c.model, c.precision, c.groups);
  const Outcome plain = outcome_of(config, c.plain);
  for (const int zero : {2, 3}) {
    How cut = c.plain;
    cut.zero = zero;
    cut.once = true;
    const Outcome once = outcome_of(config, cut);
    expect_same_bits(once, plain);
    EXPECT_GT(once.left_early.front(), 4) << "parameters say how often a gradient comes";
  }
}

TEST_P(DataParallelSums, of_every_microbatch_are_the_same_bits_whether_weights_are_cut_or_not) {
  const Case& c = GetParam();
  const ModelConfig config = model_of(c.model, c.precision, c.groups);
  How cut = c.plain;
  cut.zero = 2;
  const Outcome whole = outcome_of(config, cut);
  cut.zero = 3;
  expect_same_bits(outcome_of(config, cut), whole);
}

INSTANTIATE_TEST_SUITE_P(Layouts, DataParallelSums, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// The words stand in two stages, whose copies stay equal though each rank updates a part of them.
TEST(CutStates, of_a_pipeline_with_tied_words_are_the_same_bits) {
  for (const char* model : {"gpt2", "llama"})
    for (const int virtual_stages : {0, 2}) {
      const ModelConfig config = shape_of(model, 4);
      Cut plain{.parallel = {.pp = 2, .dp = 2, .virtual_stages = virtual_stages}, .steps = rounds(6)};
      const auto of = [&] {
        Curve curve = train(config, plain);
        curve.bytes_at_rest.clear();
        return curve;
      };
      const Curve whole = of();
      plain.parallel.zero = 1;
      plain.parallel.bucket_elements = 600;
      EXPECT_EQ(of(), whole);
      plain.parallel.overlap_reduce = true;
      EXPECT_EQ(of(), whole);
      EXPECT_TRUE(whole.copies_agree);
    }
}

// As in Layouts: sums over samples are rounded in another order, which six steps of Adam carry on.
TEST(CutStates, train_as_one_rank_does) {
  const ModelConfig config = model_of("gpt2");
  const Outcome alone = outcome_of(config, {.degrees = {}});
  for (const int dp : {2, 4}) {
    const Outcome cut = outcome_of(config, {.degrees = {.dp = dp}, .zero = 1, .bucket = 500});
    ASSERT_EQ(cut.losses.size(), alone.losses.size());
    for (std::size_t i = 0; i < alone.losses.size(); ++i) {
      EXPECT_NEAR(cut.losses[i], alone.losses[i], 2e-6);
      EXPECT_NEAR(cut.norms[i], alone.norms[i], 2e-5 * alone.norms[i]);
    }
  }
}

// f32: two moments; bf16: masters too. Buckets end at multiples of 16 elements a rank, so a share may be a
// few lines longer than its part.
TEST(CutStates, are_held_once_over_the_ranks) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const ModelConfig config = model_of("gpt2", precision);
    const std::int64_t whole = outcome_of(config, {.degrees = {}, .steps = 1}).optimizer_bytes.at(0);
    for (const int dp : {2, 4}) {
      const Outcome plain = outcome_of(config, {.degrees = {.dp = dp}, .steps = 1});
      const Outcome cut = outcome_of(config, {.degrees = {.dp = dp}, .zero = 1, .steps = 1});
      for (int rank = 0; rank < dp; ++rank) {
        EXPECT_EQ(plain.optimizer_bytes.at(rank), whole);
        EXPECT_GE(cut.optimizer_bytes.at(rank), whole / dp);
        EXPECT_LE(cut.optimizer_bytes.at(rank), whole / dp + 3 * 3 * 64);
      }
    }
  }
}
