// A replica on one rank, without data, log or checkpoints.
#include "weft/cli/bench_train.h"

#include <algorithm>

#include "weft/backend/cpu/device.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/random.h"
#include "weft/comm/solo.h"
#include "weft/model/count.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"
#include "weft/train/feed.h"
#include "weft/train/replica.h"
#include "weft/train/run_data.h"
#include "weft/train/stages.h"

namespace weft::cli {
namespace {

/// Tokens that nobody wrote, the same however many are in a batch; every one counts.
Batch made_up(Device& device, const ModelConfig& config, std::int64_t b, std::uint64_t number) {
  const std::int64_t s = config.sequence;
  const Draw draw({.seed = 1, .purpose = Purpose::test});
  std::vector<std::int32_t> tokens, targets, places, positions;
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < s; ++i) {
    places.push_back(std::int32_t(i));
    for (std::int64_t row = 0; row < b; ++row) {
      const auto at = number * std::uint64_t(b * (s + 1)) + std::uint64_t(row * (s + 1) + i);
      tokens.push_back(std::int32_t(draw.word(at) % std::uint32_t(config.vocabulary)));
      targets.push_back(std::int32_t(draw.word(at + 1) % std::uint32_t(config.vocabulary)));
      positions.push_back(std::int32_t(i));
    }
  }
  for (std::int64_t row = 0; row < b; ++row) samples.push_back(std::int64_t(number) * b + row);
  Batch batch;
  batch.text = {.tokens = from_host(device, {s, b}, tokens),
                .places = from_host(device, {s}, places),
                .positions = from_host(device, {s, b}, positions),
                .types = {},
                .documents = {}};
  batch.targets = from_host(device, {s, b}, targets);
  batch.mask = from_host(device, {s, b}, std::vector<float>(tokens.size(), 1));
  batch.samples = from_host(device, {b}, samples);
  return batch;
}

/// A step's samples of a family that reads none but its own. All tokens count as there, so that the work is
/// what shapes say.
std::vector<Batch> samples_of(const TrainConfig& config, const Replica& replica) {
  const RunData data = open_run_data(config);
  const auto& set = data.sets[data::Split::train];
  Feed feed(set, run_sampler(config.data, set->size()), place_of(replica), 0);
  const std::int64_t rows = rows_of_a_pass(config.model, config.batch);
  const auto read = feed.next({.global_batch = int(config.batch.global), .micro_batch = int(rows)});
  std::vector<Batch> batches(read.begin(), read.end());
  for (Batch& batch : batches)
    for (Sequences* sequences : {&batch.text, &batch.source})
      if (sequences->documents) ops::fill(sequences->documents, 0);
  return batches;
}

class OneRank {
 public:
  OneRank(const TrainConfig& config, WorkTimes& times)
      : config_(config),
        device_({.threads = config.run.threads, .exact = config.model.exact, .times = &times}),
        replica_(replica_config(config), {device_, mesh_}) {
    const std::int64_t rows = rows_of_a_pass(config.model, config.batch), passes = config.batch.global / rows;
    if (replica_.kind().samples(config.model).of == Samples::Of::documents)
      for (std::int64_t i = 0; i < passes; ++i)
        batches_.push_back(made_up(device_, config.model, rows, std::uint64_t(i)));
    else
      batches_ = samples_of(config, replica_);
  }
  CpuDevice& device() { return device_; }
  Dtype dtype() const { return replica_.dtype(); }

  StepReport step(int number) {
    const double rate = config_.rate.peak.value_or(1e-4);
    return replica_.step(
        batches_, {.seed = std::uint64_t(config_.run.seed),
                   .step = number,
                   .rate = rate,
                   .ends_rate = rate,
                   .decay = 0.01,
                   .clip = config_.optimizer.clip,
                   .together = int(config_.batch.micro / rows_of_a_pass(config_.model, config_.batch))});
  }

 private:
  const TrainConfig& config_;
  CpuDevice device_;
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Replica replica_;
  std::vector<Batch> batches_;
};

void refuse_what_is_not_measured(const TrainConfig& config) {
  if (config.optimizer.kind != OptimizerKind::adam)
    fail(Kind::usage, "bench train: measures steps of Adam; leave out --optimizer ",
         words(config.optimizer.kind)[std::size_t(config.optimizer.kind)]);
}

Limits better(const Limits& a, const Limits& b) {
  return {std::max(a.product_flops, b.product_flops), std::max(a.copy_bytes, b.copy_bytes)};
}

}  // namespace

double TrainBench::median() const {
  std::vector<double> sorted = steps;
  std::ranges::sort(sorted);
  return sorted.at(sorted.size() / 2);
}

TrainBench bench_training(const TrainConfig& config, int steps) {
  refuse_what_is_not_measured(config);
  TrainBench out;
  OneRank rank(config, out.times);
  CpuDevice& device = rank.device();
  out.threads = device.threads();
  out.tokens = double(config.batch.global) * double(config.model.sequence);
  out.flops = double(config.batch.global) * training_flops(config.model, config.model.sequence);
  const Stopwatch first;
  (void)rank.step(1);
  out.first = first.seconds();
  out.limits = measure_limits(device, rank.dtype());
  (void)rank.step(2);
  device.forget_peaks();
  out.times.clear();
  device.work() = {};
  const std::int64_t before = device.memory().fresh_blocks;
  for (int i = 0; i < steps; ++i) {
    const Stopwatch watch;
    out.loss = rank.step(3 + i).loss();
    out.steps.push_back(watch.seconds());
  }
  out.memory = device.memory();
  out.fresh_blocks = out.memory.fresh_blocks - before;
  out.work = device.work().by;
  const WorkTimes kept = out.times;
  out.limits = better(out.limits, measure_limits(device, rank.dtype()));
  out.times = kept;
  return out;
}

}  // namespace weft::cli
