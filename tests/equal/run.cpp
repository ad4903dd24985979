// Replicas as the trainer builds them, over samples that no file holds.
#include "tests/equal/run.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "tests/support/tiny.h"
#include "tests/support/trials.h"
#include "weft/base/error.h"
#include "weft/comm/threads.h"
#include "weft/comm/through_host.h"
#include "weft/mesh/mesh.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/train/replica.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft::testing {
namespace {

/// A context-parallel rank's two chunks of what has the sequence first.
Tensor chunks_of(const Tensor& x, int rank, int ranks) {
  const std::int64_t chunk = x.dim(0) / (2 * ranks);
  Shape part = x.shape();
  part[0] = 2 * chunk;
  const Tensor out = empty(x.device(), part, x.dtype());
  ops::copy_into(out.slice(0, 0, chunk), x.slice(0, rank * chunk, chunk));
  ops::copy_into(out.slice(0, chunk, chunk), x.slice(0, (2 * ranks - 1 - rank) * chunk, chunk));
  return out;
}

/// The same of rows [b, s].
Tensor chunks_of_rows(const Tensor& x, int rank, int ranks) {
  const Tensor turned = ops::contiguous(x.permute({1, 0}));
  return ops::contiguous(chunks_of(turned, rank, ranks).permute({1, 0}));
}

/// The first tokens of every sample do not count, of each another number.
void leave_out_tokens(const Batch& batch, std::int64_t sample) {
  for (std::int64_t row = 0; row < batch.mask.dim(1); ++row)
    ops::fill(batch.mask.slice(1, row, 1).slice(0, 0, (sample + row) % 4), 0);
}

/// Each has two, of which the first is of another length in each of four samples in a row.
void part_documents(Batch& batch, std::int64_t sample) {
  const std::int64_t s = batch.mask.dim(0), b = batch.mask.dim(1);
  std::vector<std::int32_t> segments, positions(std::size_t(s * b));
  for (std::int64_t row = 0; row < b; ++row)
    for (std::int64_t i = 0; i < s; ++i) {
      const std::int64_t second = 2 + (sample + row) % 4;
      segments.push_back(i >= second);
      positions[std::size_t(i * b + row)] = std::int32_t(i >= second ? i - second : i);
    }
  batch.text.segments = from_host(batch.mask.device(), {b, s}, segments);
  batch.text.positions = from_host(batch.mask.device(), {s, b}, positions);
  batch.text.restarted = true;
}

void count(Batch& batch) {
  batch.counted = number(ops::sum(batch.mask));
  for (Further& further : batch.further) further.counted = number(ops::sum(further.mask));
}

/// Experts are shared by as many ranks as other layers, where nothing else is said.
ParallelConfig layout_for(const ModelConfig& config, const Cut& cut) {
  ParallelConfig parallel = cut.parallel;
  if (config.experts.count > 0 && parallel.etp == 0) parallel.etp = parallel.tp;
  return parallel;
}

/// What a command line would have said: the rest is as a run makes it of that.
TrainConfig settings_of(const ModelConfig& config, const Cut& cut) {
  TrainConfig out;
  out.model = config;
  out.model.exact = cut.exact;
  out.parallel = layout_for(config, cut);
  out.batch = {.micro = cut.micro_batch, .global = cut.samples, .per_token_loss = cut.per_token};
  out.optimizer = cut.optimizer;
  out.scaling = {.initial = cut.loss_scale,
                 .window = 2,
                 .hysteresis = 1,
                 .reduce_in_bf16 = cut.reduce_in_bf16,
                 .sum_in_bf16 = cut.sum_in_bf16};
  out.run.seed = 7;
  return out;
}

/// This rank's samples of a step: the global batch is the same whatever the layout.
std::vector<Batch> batches_of(Device& device, const TrainConfig& settings, const Cut& cut,
                              const ProcessMesh& mesh, int step) {
  std::vector<Batch> out;
  const std::int64_t per_rank = cut.samples / cut.parallel.dp;
  const std::int64_t rows = rows_of_a_pass(settings.model, settings.batch);
  for (std::int64_t first = 0; first < per_rank; first += rows) {
    const std::int64_t sample = mesh.place(Axis::dp) * per_rank + first;
    out.push_back(tiny_samples(device, settings.model, {.step = step, .first = sample, .count = rows}));
    Batch& batch = out.back();
    if (cut.parted) part_documents(batch, sample);
    if (cut.uneven) {
      leave_out_tokens(batch, sample);
      look_ahead(batch, settings.model.ahead.depths);
    }
    if (cut.uneven || cut.parallel.cp > 1) batch.guesses = {};  // of whole samples, all of which count
    if (cut.late || cut.open) count(batch);                     // as a feed, which knows
    if (cut.parallel.cp == 1) continue;
    for (Further& further : batch.further)
      for (Tensor* x : {&further.tokens, &further.positions, &further.targets, &further.mask})
        *x = chunks_of(*x, mesh.place(Axis::cp), cut.parallel.cp);
    for (Tensor* x : {&batch.targets, &batch.mask}) *x = chunks_of(*x, mesh.place(Axis::cp), cut.parallel.cp);
    for (Sequences* read : {&batch.text, &batch.source}) {
      for (Tensor* x : {&read->tokens, &read->places, &read->positions, &read->types})
        if (*x) *x = chunks_of(*x, mesh.place(Axis::cp), cut.parallel.cp);
      Tensor& segments = read->segments;
      if (segments) segments = chunks_of_rows(segments, mesh.place(Axis::cp), cut.parallel.cp);
    }
  }
  return out;
}

/// By name and place in the whole.
using Copies = std::map<std::string, std::vector<std::vector<double>>>;

ReplicaConfig replica_of(const TrainConfig& settings, const Cut& cut) {
  ReplicaConfig out = replica_config(settings);
  out.loads.resize(cut.always.empty() ? 0 : std::size_t(settings.model.experts.count));
  for (const int expert : cut.always) out.loads[std::size_t(expert)] = 1;
  return out;
}

/// The replica that a run would build, mistakes aside, and what it reads.
class Rank {
 public:
  Rank(const ModelConfig& config, const Cut& cut, Communicator& world, const std::string& device = "cpu")
      : settings_(settings_of(config, cut)),
        cut_(cut),
        device_(open(cut, device)),
        host_(cut.open && device != "meta" ? open_device("cpu", {.threads = 1}) : nullptr),
        words_(words_for(world)),
        mesh_(layout_of(settings_.parallel), words_ ? *words_ : world),
        replica_(replica_of(settings_, cut), {*device_, mesh_}, [this](Parameter& p) { plant(p); }) {
    if (!cut.always.empty()) choose_always();
    if (cut.fault == Fault::norm_counts_copies) count_tied_copies();
    if (cut.fault == Fault::weight_gradient_dropped) drop_a_gradient(".mlp.down.weight");
    if (cut.fault == Fault::experts_learn_nothing && mesh_.place(Axis::ep) + 1 == cut.parallel.ep)
      drop_a_gradient(".down.weight");
    if (cut.disturbance.share > 0) disturb(replica_.weights(), cut.disturbance);
  }

  StepReport step(int number) {
    const double rate = 5e-3 * std::min(1.0, (number - 1) / 5.0);
    auto batches = batches_of(*device_, settings_, cut_, mesh_, number);
    if (cut_.fault == Fault::samples_reordered)
      std::rotate(batches.begin(), batches.begin() + 1, batches.end());
    if (cut_.spoils_gradients) spoil_gradients();
    const int before = waits();
    const StepReport report = stepped(batches, rate, number);
    last_waits_ = waits() - before;
    most_waits_ = std::max(most_waits_, last_waits_);
    return report;
  }
  int most_waits() const { return most_waits_; }
  int last_waits() const { return last_waits_; }
  int waits() const { return late() ? late()->waits() : cut_.waited ? int(cut_.waited()) : 0; }
  StepReport stepped(std::span<const Batch> batches, double rate, int number) {
    StepOrder order = step_order(settings_);
    // Dropout of its own: at one seed of twelve a gradient near zero changes its sign with the layout, which
    // Adam turns into a step (losses 6e-6 apart; 1e-7 at the others).
    order.seed = 3;
    order.step = number;
    order.rate = order.ends_rate = rate;
    order.width_rate = rate * width_factor(settings_);
    order.decay = 0.01;
    order.timers = cut_.timers;
    return replica_.step(batches, order);
  }
  std::string search(const std::string& weight) {
    replica_.weights().each_master([&](const Held& held) {
      if (held.name != weight) return;
      for (const Piece& piece : held.pieces)
        ops::fill(held.memory.slice(0, piece.at, piece.where.local.elements()),
                  std::numeric_limits<double>::infinity());
    });
    replica_.weights().publish();
    const auto batches = batches_of(*device_, settings_, cut_, mesh_, 1);
    return replica_.find_not_finite(batches, {.seed = 3, .step = 1}).where;
  }
  std::vector<double> evaluate() {
    Evaluation sums;
    replica_.evaluate(batches_of(*device_, settings_, cut_, mesh_, 99), sums, step_order(settings_).together);
    std::vector<double> means;
    for (const LossSum& sum : sums) means.push_back(sum.mean());
    return means;
  }
  /// What it holds, whether or not others do too.
  Copies copies() const {
    Copies out;
    replica_.each_value([&](Parameter& p) {
      const Tensor held = p.value.view({p.shape.elements()});
      for (const Piece& piece : p.pieces)
        out[text(p.name, piece.where.offset)].push_back(
            numbers(held.slice(0, piece.at, piece.where.local.elements())));
    });
    return out;
  }
  MemoryMeter memory() const { return device_->memory(); }
  std::int64_t most_remembered() const { return replica_.most_remembered(); }
  std::int64_t bytes_at_rest() const {
    std::int64_t bytes = 0;
    for (const WeightBlock& block : replica_.weights().blocks())
      bytes += block.values.bytes() + (block.master_is_values() ? 0 : block.master.bytes()) +
               block.grads.bytes() + 8 * block.kept;  // two moments
    return bytes;
  }

 private:
  static std::unique_ptr<Device> open(const Cut& cut, const std::string& device) {
    if (cut.open && device != "meta") return cut.open();
    auto opened = open_device(
        device, {.threads = 1, .exact = cut.exact, .trials = trials(), .counts_for = cut.counts_for});
    if (!cut.late) return opened;
    return std::make_unique<LateDevice>(std::move(opened), *cut.late);
  }
  std::unique_ptr<Communicator> words_for(Communicator& world) const {
    if (late()) return std::make_unique<LateCommunicator>(world, *late());
    if (host_) return std::make_unique<HostCommunicator>(world, *host_);
    return nullptr;
  }
  LateDevice* late() const { return cut_.late ? static_cast<LateDevice*>(device_.get()) : nullptr; }

  void spoil_gradients() {
    for (const WeightBlock& block : replica_.weights().blocks())
      ops::fill(block.grads, std::numeric_limits<double>::quiet_NaN());
  }

  /// What is added to scores outweighs them.
  void choose_always() {
    replica_.each_parameter([&](Parameter& p) {
      if (!p.name.ends_with(".expert_bias")) return;
      for (const int expert : cut_.always) ops::fill(p.value.slice(0, expert, 1), 100);
    });
  }

  // ---- mistakes
  void plant(Parameter& p) {
    if (cut_.fault == Fault::tied_copies_not_added) p.tied = false;
    if (cut_.fault == Fault::shared_keys_not_added) p.shared.partial = false;
    if (cut_.fault == Fault::sequence_parts_not_added) p.spread = p.spread.without_terms(Axis::tp);
    const bool router = p.name.ends_with(".router.weight");
    if (cut_.fault == Fault::router_terms_not_added && router) p.spread = p.spread.without_terms(Axis::tp);
    if (cut_.fault == Fault::experts_taken_for_copies && p.spread.cut.holds(Axis::ep))
      p.spread = {p.spread.cut - Axis::ep, p.spread.partial, p.spread.copy | Axis::ep};
    if (cut_.fault == Fault::norm_counts_ranks && p.spread.copy.holds(Axis::tp))
      p.spread = spread_in(View::dense, Axis::tp);
  }
  void count_tied_copies() {
    for (WeightBlock& block : replica_.weights().blocks())
      for (const WeightSlot& slot : block.slots) block.kind.counted |= slot.parameter->tied;
  }
  void drop_a_gradient(const std::string& of) {
    const std::string layer = "layers." + std::to_string(settings_.model.layers - 1) + ".";
    replica_.each_parameter([&](Parameter& p) {
      if (p.name.starts_with(layer) && p.name.ends_with(of)) p.grad.bind({});
    });
  }

  TrainConfig settings_;
  Cut cut_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> host_;         // where the device keeps its memory to itself
  std::unique_ptr<Communicator> words_;  // where they are late, or go through the host
  ProcessMesh mesh_;
  Replica replica_;
  int most_waits_ = 0, last_waits_ = 0;
};

Curve trained(Rank& rank, const Cut& cut) {
  Curve curve;
  for (int step = 1; step <= cut.steps; ++step) {
    const StepReport report = rank.step(step);
    for (const double loss : report.losses) curve.losses.push_back(loss);
    curve.norms.push_back(report.grad_norm);
    if (report.greatest_score) curve.greatest_scores.push_back(*report.greatest_score);
    curve.skipped += report.applied ? 0 : 1;
  }
  curve.evaluations = rank.evaluate();
  return curve;
}

/// After two steps and an evaluation, by rank.
std::vector<MemoryMeter> memory_of(const ModelConfig& config, const Cut& cut, const std::string& device) {
  std::vector<MemoryMeter> meters(std::size_t(ranks_of(cut)));
  run_as_threads(ranks_of(cut), [&](Communicator& world) {
    Rank rank(config, cut, world, device);
    for (int step = 1; step <= 2; ++step) (void)rank.step(step);
    (void)rank.evaluate();
    meters[std::size_t(world.rank())] = rank.memory();
  });
  return meters;
}

}  // namespace

Curve train_in(Communicator& world, const ModelConfig& config, const Cut& cut) {
  Rank rank(config, cut, world);
  return trained(rank, cut);
}

Curve train(const ModelConfig& config, const Cut& cut) {
  Curve curve;
  std::mutex mutex;
  Copies copies;
  int most_waits = 0, last_waits = 0;
  const auto ranks = std::size_t(ranks_of(cut));
  std::vector<std::int64_t> remembered(ranks), bytes(ranks);
  run_as_threads(int(ranks), [&](Communicator& world) {
    Rank rank(config, cut, world);
    Curve seen = trained(rank, cut);
    const Copies held = rank.copies();
    const std::lock_guard lock(mutex);
    most_waits = std::max(most_waits, rank.most_waits());
    last_waits = std::max(last_waits, rank.last_waits());
    if (world.rank() == 0) curve = std::move(seen);
    remembered[std::size_t(world.rank())] = rank.most_remembered();
    bytes[std::size_t(world.rank())] = rank.bytes_at_rest();
    for (const auto& [name, values] : held)
      for (const auto& copy : values) copies[name].push_back(copy);
  });
  curve.most_waits = most_waits;
  curve.last_waits = last_waits;
  curve.most_remembered = std::move(remembered);
  curve.bytes_at_rest = std::move(bytes);
  for (const auto& [name, values] : copies)
    for (const auto& copy : values) curve.copies_agree &= copy == values.front();
  return curve;
}

Curve bits_of(const ModelConfig& config, const Cut& cut) {
  Curve out = train(config, cut);
  out.bytes_at_rest.clear();
  out.most_remembered.clear();
  return out;
}

std::string memory_difference(const ModelConfig& config, const Cut& cut) {
  const auto held = memory_of(config, cut, "cpu");
  const auto counted = memory_of(config, cut, "meta");
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    const MemoryMeter &a = held[rank], &b = counted[rank];
    if (a.peak[std::size_t(Use::activations)] == 0) return text("rank ", rank, " held nothing");
    for (std::size_t use = 0; use < std::size_t(uses); ++use)
      if (a.now[use] != b.now[use] || a.peak[use] != b.peak[use])
        return text("rank ", rank, ", ", weft::name(Use(use)), ": ", a.now[use], " bytes, at most ",
                    a.peak[use], ", are held; counted are ", b.now[use], " and ", b.peak[use]);
    if (a.total != b.total || a.total_peak != b.total_peak)
      return text("rank ", rank, ": ", a.total, " bytes, at most ", a.total_peak, ", are held; counted are ",
                  b.total, " and ", b.total_peak);
  }
  return "";
}

std::vector<std::string> searched(const ModelConfig& config, const Cut& cut, const std::string& weight) {
  const int world_size = ranks_of(cut);
  std::vector<std::string> said(static_cast<std::size_t>(world_size));
  run_as_threads(world_size, [&](Communicator& world) {
    said[std::size_t(world.rank())] = Rank(config, cut, world).search(weight);
  });
  return said;
}

}  // namespace weft::testing
