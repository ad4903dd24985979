// Replicas on ranks that are threads, without data, log or checkpoints.
#include "weft/cli/bench_train.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "weft/backend/timed.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/random.h"
#include "weft/cli/rank_device.h"
#include "weft/comm/threads.h"
#include "weft/comm/timed.h"
#include "weft/data/context_split.h"
#include "weft/mesh/samples.h"
#include "weft/model/count.h"
#include "weft/model/kinds.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft::cli {
namespace {

/// Which tokens a rank reads of a step.
struct TokensRead {
  std::int64_t count = 1, number = 0;  // of samples, and of this microbatch among all
  data::ContextPart part;
};

/// Words that nobody wrote, the same however many samples are in a batch, so many places on from those that a
/// rank holds. Every one counts that a sample has.
Further words(Device& device, const ModelConfig& config, const TokensRead& rows, std::int64_t places_on) {
  const std::int64_t s = config.sequence, here = s / rows.part.ranks, b = rows.count;
  const Draw draw({.seed = 1, .purpose = Purpose::test});
  const auto word = [&](std::int64_t at) {
    return std::int32_t(draw.word(std::uint64_t(at)) % std::uint32_t(config.vocabulary));
  };
  std::vector<std::int32_t> tokens, positions, targets;
  std::vector<float> mask;
  for (std::int64_t i = 0; i < here; ++i) {
    const std::int64_t place = data::place_of(i, here, rows.part) + places_on;
    const bool there = place < s;
    for (std::int64_t row = 0; row < b; ++row) {
      const std::int64_t at = (rows.number * b + row) * (s + 1) + place;
      tokens.push_back(there ? word(at) : 0);
      targets.push_back(there ? word(at + 1) : 0);
      positions.push_back(there ? std::int32_t(place) : 0);
      mask.push_back(there ? 1.F : 0.F);
    }
  }
  return {.tokens = from_host(device, {here, b}, tokens),
          .positions = from_host(device, {here, b}, positions),
          .targets = from_host(device, {here, b}, targets),
          .mask = from_host(device, {here, b}, mask),
          .counted = double((s - places_on) * b)};
}

Batch made_up(Device& device, const ModelConfig& config, const TokensRead& rows) {
  const std::int64_t here = config.sequence / rows.part.ranks;
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < here; ++i) places.push_back(std::int32_t(data::place_of(i, here, rows.part)));
  for (std::int64_t row = 0; row < rows.count; ++row) samples.push_back(rows.number * rows.count + row);
  Batch batch;
  const Further text = words(device, config, rows, 0);
  batch.text = {.tokens = text.tokens,
                .places = from_host(device, {here}, places),
                .positions = text.positions,
                .types = {},
                .segments = {}};
  batch.targets = text.targets;
  batch.mask = text.mask;
  batch.counted = text.counted;
  for (int k = 1; k <= config.ahead.depths; ++k) batch.further.push_back(words(device, config, rows, k));
  batch.hold_samples(device, samples);
  return batch;
}

/// A step's samples of a family that reads none but its own. All tokens count as there, so that the work is
/// what shapes say.
std::vector<Batch> samples_of(const TrainConfig& config, const Replica& replica) {
  const RunData data = open_run_data(config);
  const auto& set = data.sets[data::Split::train];
  Feed feed(set, training_sampler(config.data, set->size()), place_of(replica, config.data), 0);
  const std::int64_t rows = rows_of_a_pass(config.model, config.batch);
  const auto read = feed.next({.global_batch = int(config.batch.global), .micro_batch = int(rows)});
  std::vector<Batch> batches(read.begin(), read.end());
  for (Batch& batch : batches)
    for (Sequences* sequences : {&batch.text, &batch.source})
      if (sequences->segments) ops::fill(sequences->segments, 0);
  return batches;
}

class OneRank {
 public:
  OneRank(const TrainConfig& config, Communicator& world, int threads)
      : config_(config),
        here_(config.run.device,
              {.threads = threads,
               .exact = config.model.exact,
               .times = &times_,
               .graphs = config.run.graphs,
               .warpgroups = config.run.warpgroups,
               .place = world.rank()},
              world),
        world_(here_.world()),
        mesh_(layout_of(config.parallel), world_) {
    look(!names_gpu(config.run.device));
    weft::charge(world_, mesh_,
                 [this](Partners partners) -> Spent& { return waits_[std::size_t(partners)]; });
    replica_.emplace(replica_config(config), ReplicaPlace{device(), mesh_});
    if (replica_->kind().samples(config.model).of == Samples::Of::documents)
      make_up();
    else
      batches_ = samples_of(config, *replica_);
  }
  Device& device() { return here_.device(); }
  WorkTimes& times() { return times_; }
  /// Whether kernels are timed; it was so before. A GPU that notes when it came to each is held up by that.
  bool look(bool at_kernels) { return !std::exchange(times_.paused, !at_kernels); }
  Dtype dtype() const { return replica_->dtype(); }

  StepReport step(int number) {
    const double rate = config_.rate.peak.value_or(1e-4);
    StepOrder order = step_order(config_);
    order.step = number;
    order.rate = order.ends_rate = rate;
    order.width_rate = rate * width_factor(config_);
    order.decay = 0.01;
    const StepReport report = replica_->step(batches_, order);
    device().synchronize();
    return report;
  }
  void forget() {
    device().forget_peaks();
    device().work() = {};
    times_.forget();
    for (Spent& one : waits_) one.forget();
  }
  RankBench told() {
    RankBench out{
        .place = {mesh_.place(Axis::tp), mesh_.place(Axis::cp), mesh_.place(Axis::dp), mesh_.place(Axis::pp)},
        .work = times_.total()};
    for (std::size_t i = 0; i < waits_.size(); ++i) out.waits[i] = waits_[i].seconds();
    return out;
  }

 private:
  void make_up() {
    const std::int64_t rows = rows_of_a_pass(config_.model, config_.batch);
    const std::int64_t passes = config_.batch.global / sample_ranks(config_.parallel) / rows;
    for (std::int64_t i = 0; i < passes; ++i)
      batches_.push_back(made_up(device(), config_.model,
                                 {.count = rows,
                                  .number = mesh_.place(sample_axes) * passes + i,
                                  .part = {mesh_.place(Axis::cp), config_.parallel.cp}}));
  }
  const TrainConfig& config_;
  WorkTimes times_;
  std::array<Spent, kinds_of_partners> waits_;
  RankDevice here_;
  TimedCommunicator world_;
  ProcessMesh mesh_;
  std::optional<Replica> replica_;  // built when circles know whom they are charged to
  std::vector<Batch> batches_;
};

/// Steps of a GPU in which its kernels are timed: few say it, since nobody else has it.
constexpr int most_looked_at = 3;

void must_be_measured(const TrainConfig& config) {
  const OptimizerKind kind = config.optimizer.kind;
  if (kind != OptimizerKind::adam)
    fail(Kind::usage, "bench train: measures steps of Adam; leave out --optimizer ",
         words(kind)[std::size_t(kind)]);
  if (config.run.device != "cpu" && !names_gpu(config.run.device))
    fail(Kind::usage, "bench train: measures the processor or a GPU; leave out --device ", config.run.device);
}

Limits better(const Limits& a, const Limits& b) {
  return {std::max(a.product_flops, b.product_flops), std::max(a.copy_bytes, b.copy_bytes)};
}

/// What ranks tell the first one, one after the other.
class Ledger {
 public:
  explicit Ledger(TrainBench& out) : out_(out) {}
  void add(OneRank& rank, std::size_t number) {
    const std::lock_guard lock(mutex_);
    if (out_.ranks.size() <= number) out_.ranks.resize(number + 1);
    out_.ranks[number] = rank.told();
    for (std::size_t i = 0; i < std::size_t(works); ++i) {
      out_.kinds[i].seconds += rank.times().spent[i].seconds();
      out_.kinds[i].calls += rank.times().calls[i];
      out_.kinds[i].counted.flops += rank.device().work().by[i].flops;
      out_.kinds[i].counted.bytes += rank.device().work().by[i].bytes;
    }
  }

 private:
  TrainBench& out_;
  std::mutex mutex_;
};

/// What is measured of a device, and by how many threads of it.
struct Measured {
  const std::string& device;
  int threads;
  LimitSizes sizes;
};

/// By one rank with the threads of all, who wait.
Limits limits_here(Communicator& world, OneRank& rank, const Measured& what) {
  Limits limits;
  world.barrier();
  if (world.rank() == 0) {
    const bool looked = rank.look(false);
    const bool own = world.size() == 1 || names_gpu(what.device);
    const auto whole = own ? nullptr : open_device(what.device, {.threads = what.threads * world.size()});
    limits = measure_limits(own ? rank.device() : *whole, rank.dtype(), what.sizes);
    rank.look(looked);
  }
  world.barrier();
  return limits;
}

/// One training, as all of its ranks see it.
struct Job {
  const TrainConfig& config;
  int steps;
  Measured limits;
};

struct Run {
  int first, count;
};
/// What each of these steps takes until the last rank has begun it and this one has done it.
std::vector<double> timed_steps(Communicator& world, OneRank& rank, Run run, TrainBench& out) {
  std::vector<double> seconds;
  for (int i = 0; i < run.count; ++i) {
    world.barrier();
    const Stopwatch watch;
    const double loss = rank.step(run.first + i).loss();
    seconds.push_back(watch.seconds());
    if (world.rank() == 0) out.loss = loss;
  }
  return seconds;
}

void measure(const Job& job, Communicator& world, Ledger& ledger, TrainBench& out) {
  OneRank rank(job.config, world, out.threads);
  const bool tells = world.rank() == 0;
  world.barrier();
  const Stopwatch first;
  (void)rank.step(1);
  if (tells) out.first = first.seconds();
  const Limits before = limits_here(world, rank, job.limits);
  (void)rank.step(2);
  rank.forget();
  const std::int64_t blocks = rank.device().memory().fresh_blocks;
  std::vector<double> steps = timed_steps(world, rank, {3, job.steps}, out);
  if (tells) {
    out.memory = rank.device().memory();
    out.fresh_blocks = out.memory.fresh_blocks - blocks;
    out.steps = steps;
  }
  if (!rank.look(true)) {
    rank.forget();
    steps = timed_steps(world, rank, {3 + job.steps, std::min(job.steps, most_looked_at)}, out);
  }
  if (tells) out.timed = steps;
  ledger.add(rank, std::size_t(world.rank()));
  const Limits limits = better(before, limits_here(world, rank, job.limits));
  if (tells) out.limits = limits;
}

int threads_of_a_rank(const RunConfig& run, int ranks) {
  if (run.threads > 0) return run.threads;
  return std::max(1, int(std::thread::hardware_concurrency()) / ranks);
}

}  // namespace

double TrainBench::median() const {
  std::vector<double> sorted = steps;
  std::ranges::sort(sorted);
  return sorted.at(sorted.size() / 2);
}

LimitSizes limit_sizes(std::string_view device) {
  if (!names_gpu(device)) return {};
  return {.side = 8192, .block = std::int64_t(1) << 30};
}

TrainBench bench_training(const TrainConfig& config, int steps, const LimitSizes& sizes) {
  must_be_measured(config);
  const int ranks = layout_of(config.parallel).world();
  TrainBench out;
  out.device = config.run.device;
  out.threads = threads_of_a_rank(config.run, ranks);
  out.tokens = double(config.batch.global) * double(kind_of(config.model).samples(config.model).tokens());
  out.flops = double(config.batch.global) * training_flops(config.model, config.model.sequence);
  Ledger ledger(out);
  const Job job{config, steps, {out.device, out.threads, sizes}};
  run_as_threads(ranks, [&](Communicator& world) { measure(job, world, ledger, out); });
  return out;
}

}  // namespace weft::cli
