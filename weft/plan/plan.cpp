// Counting: the same Replica, on a device without numbers, among ranks that say nothing.
#include "weft/plan/plan.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/shelf.h"
#include "weft/plan/moments.h"
#include "weft/plan/quiet.h"
#include "weft/train/ranks.h"
#include "weft/train/run_data.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

/// Along every axis but pp the last one, so that whoever splits a circle in equal runs gets the last of them.
Coordinate counted(const ParallelLayout& layout, int stage) {
  Coordinate at{};
  for (int axis = 0; axis < axes; ++axis) at[std::size_t(axis)] = layout.degree(Axis(axis)) - 1;
  at[std::size_t(Axis::pp)] = stage;
  return at;
}

/// What lies there at once: some microbatches one by one, and room for the others.
struct Microbatches {
  std::vector<Batch> some;
  Tensor others;
};

/// What the feed hands out, without numbers: so many rows of samples so long.
class Batches {
 public:
  Batches(const TrainConfig& c, const data::Rows& rows, const Replica& replica)
      : config_(c),
        rows_(rows),
        kind_(replica.kind()),
        device_(replica.device()),
        samples_(samples_of(c, kind_, rows)) {}

  Microbatches made(int all, int some) const {
    Microbatches out;
    const std::int64_t before = device_.memory().total;
    for (int i = 0; i < some; ++i) out.some.push_back(batch());
    const std::int64_t bytes = device_.memory().total - before;
    if (all > some) out.others = empty(device_, {bytes / some * (all - some) / 4}, Dtype::i32);
    return out;
  }

 private:
  Batch batch() const {
    Batch batch;
    for (const BatchField& field : kind_.fields) field.to(batch) = field_of(field);
    for (Sequences* sequences : {&batch.text, &batch.source}) place(*sequences);
    batch.text.restarted = config_.data.reset_positions || documents_begin_anew();
    batch.hold_samples(device_, std::vector<std::int64_t>(std::size_t(rows_.count)));
    if (config_.model.most_guesses > 0) batch.guesses = guesses();
    for (int k = 0; k < config_.model.ahead.depths; ++k)
      batch.further.push_back({.tokens = empty_like(batch.text.tokens),
                               .positions = empty_like(batch.text.tokens),
                               .targets = empty_like(batch.targets),
                               .mask = empty_like(batch.mask)});
    return batch;
  }
  /// Whether attention and positions do, wherever a document or conversation ends.
  bool documents_begin_anew() const {
    return config_.data.between_documents || (config_.data.chat.on && parts_conversations(config_.model));
  }
  static Samples samples_of(const TrainConfig& c, const ModelKind& kind, const data::Rows& rows) {
    Samples samples = kind.samples(c.model);
    samples.sequence = rows.length;
    return samples;
  }
  Guesses guesses() const {
    const std::int64_t n =
        rows_.count * std::min(config_.model.most_guesses, samples_.tokens() / config_.parallel.cp);
    return {.rows = empty(device_, {n}, Dtype::i32),
            .targets = empty(device_, {n}, Dtype::i32),
            .mask = empty(device_, {n}, Dtype::f32)};
  }
  Tensor field_of(const BatchField& field) const {
    const bool apart = config_.data.reset_attention || documents_begin_anew();
    if (field.may_lack && !(field.from == data::Field::documents && apart)) return {};
    const std::int64_t s = samples_.length(field.from) / config_.parallel.cp, b = rows_.count;
    switch (field.as) {
      case BatchField::As::ids:
        return empty(device_, {s, b}, Dtype::i32);
      case BatchField::As::counts:
        return empty(device_, {s, b}, Dtype::f32);
      case BatchField::As::rows:
      case BatchField::As::present:
        return empty(device_, {b, s}, Dtype::i32);
      case BatchField::As::samples:
        return empty(device_, {b}, Dtype::i32);
      case BatchField::As::counted:
        return empty(device_, {b}, Dtype::f32);
    }
    return {};
  }
  void place(Sequences& sequences) const {
    if (!sequences.tokens) return;
    sequences.places = empty(device_, {sequences.tokens.dim(0)}, Dtype::i32);
    if (!sequences.positions) sequences.positions = empty(device_, sequences.tokens.shape(), Dtype::i32);
  }

  const TrainConfig& config_;
  data::Rows rows_;
  const ModelKind& kind_;
  Device& device_;
  Samples samples_;
};

/// More microbatches than these change no peak: a pipeline is full, and all that comes then is alike. Where
/// gradients are cut the first one's arrive in their places, and from the second one on what arrives lies
/// beside them while the next one computes (optim/grad_shares.h). A schedule that keeps every one open, or
/// one from a file, is not cut.
int enough(const TrainConfig& c, int microbatches) {
  const ParallelConfig& p = c.parallel;
  const bool known = p.schedule.empty() || p.schedule == "1f1b" || p.schedule == "interleaved" ||
                     p.schedule.starts_with("zb");
  if (!known) return microbatches;
  const int together = int(c.batch.micro / rows_of_a_pass(c.model, c.batch));
  const int alone = p.zero >= 2 ? 3 : 2;
  const int full = p.pp == 1 ? alone : 4 * p.pp * std::max(p.virtual_stages, 1);
  return std::min(microbatches, (full + microbatches % p.pp) * together);
}

/// Partial sums of gradients that wait at once in exact mode, of so many passes (optim/grad_tree.h): the left
/// half is one where the right one is made, and is not the smaller.
int waiting_sums(int passes) { return int(std::bit_width(unsigned(std::max(passes, 1)))) - 1; }

/// How many more there are than the microbatches that are counted have.
int sums_not_counted(const TrainConfig& c, std::span<const Moment> moments) {
  if (!sums_of(c.model).tree_of_sequences()) return 0;
  int all = 0, some = 0;
  for (const Moment& moment : moments) {
    all = std::max(all, waiting_sums(moment.passes));
    some = std::max(some, waiting_sums(enough(c, moment.passes)));
  }
  return all - some;
}

/// Those that the microbatches which are not counted would add: of whole blocks, and where sequences of
/// several ranks meet in one pass, of each.
std::vector<Tensor> further_sums(const Replica& replica, int levels) {
  std::vector<Tensor> out;
  for (const WeightBlock& block : replica.weights().blocks()) {
    if (block.kind.role == Role::kept) continue;
    const int sums = levels * block.slots.front().parameter->sequences;
    for (int i = 0; i < sums; ++i)
      out.push_back(empty(replica.device(), {block.elements}, Dtype::f32, Use::gradients));
  }
  return out;
}

enum class Load : std::uint8_t { even, crowded };

struct CountOrder {
  const OpenCounter& open;
  Told& told;
  PlanFor what = PlanFor::memory;
  Load load = Load::even;
};

struct Counted {
  MemoryMeter memory;
  std::int64_t training = 0;  // at most, before anything is evaluated; of a run that trains
  std::int64_t on_disk = 0, copied = 0;
  Volumes sends;
  std::vector<TiedCopy> tied;
};

/// Of what the ranks that hold the same write between them (train/resume_weights.h), a rank's even share.
std::int64_t copied_by_a_save(const Replica& replica, const CheckpointConfig& c) {
  if (!c.in_background) return 0;
  std::int64_t bytes = 0;
  const auto add = [&](const Held& held) {
    const Readers& readers = held.block.readers;
    const int groups = readers.twins ? readers.twins->size() : 1;
    const int sharers = held.of_ranks || readers.cut() ? groups : readers.ranks();
    std::int64_t elements = 0;
    for (const Piece& piece : held.pieces) elements += piece.where.local.elements();
    const bool written = std::ranges::any_of(held.parameter.pieces,
                                             [](const Piece& piece) { return piece.where.replica == 0; });
    if (written) bytes += elements * size_of(held.memory.dtype()) / sharers;
  };
  replica.weights().each_master(add);
  if (c.save_optimizer) replica.optimizer().each_state(add);
  return bytes;
}

/// The same step twice, as what waits from step to step has its place by then.
void train(Replica& replica, const TrainConfig& c, std::int64_t step, std::span<const Batch> batches) {
  StepOrder order = step_order(c);
  order.rate = order.ends_rate = 1e-4;
  order.step = step;
  for (int i = 0; i < 2; ++i) (void)replica.step(batches, order);
}

/// In a step of which `some` microbatches are here. Each adds the same, so two shorter steps tell; schedules
/// that interleave take as many at a time as there are stages.
Volumes sent_in_a_step(Replica& replica, const TrainConfig& c, const Moment& moment,
                       std::span<const Batch> some, Volumes& counted) {
  const auto of = [&](std::size_t microbatches) {
    StepOrder order = step_order(c);
    order.rate = order.ends_rate = 1e-4;
    order.step = moment.step;
    counted = {};
    (void)replica.step(some.first(microbatches), order);
    return VolumesOf{.microbatches = int(microbatches), .volumes = counted};
  };
  const VolumesOf more = of(some.size());
  if (moment.passes == more.microbatches) return more.volumes;
  const int together = int(c.batch.micro / rows_of_a_pass(c.model, c.batch));
  return extended(of(some.size() - std::size_t(c.parallel.pp * together)), more, moment.passes);
}

/// Nothing is remembered for a backward, so of one stage two microbatches are all alike; and of a pipeline
/// two groups, whose sends lie there until their readers have them.
void evaluate(Replica& replica, const TrainConfig& c) {
  const std::int64_t rows = sums_of(c.model).samples_of_a_pass(c.eval.micro);
  const int all = int(c.eval.global / sample_ranks(c.parallel) / rows), together = int(c.eval.micro / rows);
  const int some = std::min(all, 2 * c.parallel.pp * together);
  const Microbatches batches = Batches(c, {rows, c.model.sequence}, replica).made(all, some);
  Evaluation sums;
  replica.evaluate(batches.some, sums, together);
}

Counted count(const TrainConfig& c, int stage, const Colors& colors, const CountOrder& order) {
  const auto device = order.open.device();
  const ParallelLayout layout = layout_of(c.parallel);
  QuietWorld world(layout.rank(counted(layout, stage)), colors, &order.told);
  const SpokenBy by = order.open.spoken_by;
  std::optional<GpuWords> of_gpus;
  if (by != SpokenBy::hosts) of_gpus.emplace(world, by);
  CountedCommunicator counts(of_gpus ? static_cast<Communicator&>(*of_gpus) : world);
  const ProcessMesh mesh(layout, counts);
  Volumes sent;
  charge(counts, mesh, sent);
  ReplicaConfig config = replica_config(c);
  config.model = with_all_layers(config.model);
  config.crowded = order.load == Load::crowded;
  Replica replica(config, {*device, mesh});
  // A step's batches and sums lie there until the next one, and evaluations come between.
  Microbatches batches;
  std::vector<Tensor> sums;
  const std::vector<Moment> moments = c.eval.skip_train ? std::vector<Moment>() : moments_of(c);
  for (const Moment& moment : moments) {
    batches = {};
    batches = Batches(c, moment.rows, replica).made(moment.passes, enough(c, moment.passes));
    if (sums.empty()) sums = further_sums(replica, sums_not_counted(c, moments));
    train(replica, c, moment.step, batches.some);
  }
  Counted out{.memory = {}, .training = device->memory().total_peak};
  if (!c.eval.skip_train && order.what == PlanFor::messages) {
    // Before anything is evaluated: near ranks then know the weights, and a step would send less.
    out.tied = tied_copies(replica.weights());
    out.sends = sent_in_a_step(replica, c, moments.back(), batches.some, sent);
  }
  if (evaluates(c)) evaluate(replica, c);
  out.memory = device->memory();
  if (c.eval.skip_train) out.training = out.memory.total_peak;
  if (const Shelf* shelf = replica.weights().shelf()) out.on_disk = shelf->file().bytes_of_file();
  if (!c.eval.skip_train) out.copied = copied_by_a_save(replica, c.checkpoint);
  return out;
}

}  // namespace

Plan plan_run(const TrainConfig& c, const OpenCounter& open, PlanFor what) {
  if (!countable(c)) fail(Kind::internal, "plan: numbers are too large to be counted");
  Plan plan{.parameters = count_parameters(c.model),
            .tokens = c.batch.global * c.model.sequence,
            .flops = double(c.batch.global) * training_flops(c.model, c.model.sequence),
            .kinds = {}};
  const Colors colors = colors_of(layout_of(c.parallel));
  const int twins = stage_ranks(c.parallel);
  std::vector<Volumes> sends;
  std::vector<std::vector<TiedCopy>> tied;
  Told told;
  for (int stage = 0; stage < c.parallel.pp; ++stage) {
    const Counted counted = count(c, stage, colors, {.open = open, .told = told, .what = what});
    sends.push_back(counted.sends);
    tied.push_back(counted.tied);
    const bool alike = !plan.kinds.empty() && plan.kinds.back().memory == counted.memory;
    if (!alike)
      plan.kinds.push_back({.first = stage,
                            .last = stage,
                            .ranks = 0,
                            .memory = counted.memory,
                            .training = counted.training,
                            .on_disk = counted.on_disk,
                            .copied = counted.copied,
                            .sends = {}});
    if (c.parallel.ep * c.parallel.etp > 1 && c.model.experts.count > 0 && !alike) {
      const std::int64_t most =
          count(c, stage, colors, {.open = open, .told = told, .load = Load::crowded}).memory.total_peak;
      plan.kinds.back().crowded = most != counted.memory.total_peak ? most : 0;
    }
    plan.kinds.back().last = stage;
    plan.kinds.back().ranks += twins;
  }
  add_ties(sends, tied);
  for (KindOfRank& kind : plan.kinds)
    for (int stage = kind.first; stage <= kind.last; ++stage)
      kind.sends = most_of(kind.sends, sends[std::size_t(stage)]);
  return plan;
}

namespace {

/// Experts that a token does not go through, in numbers that cannot overflow.
double idle_at_least(const ModelConfig& m) {
  const double rest = m.experts.count - m.experts.router.chosen;
  const double inner = m.experts.latent > 0 ? double(m.experts.latent) : double(m.hidden);
  return m.experts.count == 0 ? 0 : m.experts.layers_with() * rest * inner * double(m.experts.ffn_hidden) * 2;
}

/// Tokens of what goes through a layer at once, where it is most.
double most_tokens_at_once(const TrainConfig& c) {
  const SumRules sums = sums_of(c.model);
  const std::int64_t trains = c.eval.skip_train ? 0 : sums.samples_of_a_pass(c.batch.micro);
  const std::int64_t looks = evaluates(c) ? sums.samples_of_a_pass(c.eval.micro) : 0;
  return double(std::max(trains, looks)) * double(c.model.sequence) / c.parallel.cp;
}

/// The stream between two layers.
double activations_at_least(const TrainConfig& c) {
  const double bytes = c.model.precision == Precision::f32 ? 4 : 2;
  return most_tokens_at_once(c) * double(c.model.hidden) * bytes / c.parallel.tp;
}

}  // namespace

// Training on one token multiplies every weight of a product thrice, two operations each.
double bytes_at_least(const TrainConfig& c) {
  const double parameters = training_flops(c.model, 1) / 6 + idle_at_least(c.model);
  const bool own_masters = c.model.precision != Precision::f32;
  double weights = own_masters ? 2 : 4;
  const double gradients = c.scaling.sum_in_bf16 ? 2 : 4;
  double states = (own_masters ? 4 : 0) + (c.optimizer.kind == OptimizerKind::adam ? 8 : 4);
  if (c.optimizer.offload.on) states *= 1 - c.optimizer.offload.fraction;
  if (c.optimizer.offload.on && c.optimizer.offload.weights) weights *= 1 - c.optimizer.offload.fraction;
  const auto held = [&](double bytes, int cut_from) {
    return c.parallel.zero >= cut_from ? bytes * c.parallel.shard_groups / double(data_ranks(c.parallel))
                                       : bytes;
  };
  return parameters * (held(states, 1) + held(gradients, 2) + held(weights, 3)) + activations_at_least(c);
}

// Losses are counted a thousand tokens at a time.
bool countable(const TrainConfig& c) { return bytes_at_least(c) <= 1e15 && most_tokens_at_once(c) <= 5e7; }

std::int64_t overhead_of_a_process() { return std::int64_t{128} << 20; }

}  // namespace weft
