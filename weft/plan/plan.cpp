// Counting: the same Replica, on a device without numbers, among ranks that say nothing.
#include "weft/plan/plan.h"

#include <algorithm>
#include <bit>

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/plan/quiet.h"
#include "weft/train/batch_size.h"
#include "weft/train/replica.h"
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

/// What the feed hands out, without numbers.
class Batches {
 public:
  Batches(const TrainConfig& c, const ModelKind& kind, Device& device)
      : config_(c), kind_(kind), device_(device), samples_(kind.samples(c.model)) {}

  Batch batch() const {
    Batch batch;
    for (const BatchField& field : kind_.fields) field.to(batch) = field_of(field);
    for (Sequences* sequences : {&batch.text, &batch.source}) place(*sequences);
    batch.text.restarted = config_.data.reset_positions || config_.data.between_documents;
    batch.samples = empty(device_, {rows()}, Dtype::i64);
    return batch;
  }
  /// Tokens that a rank holds of a microbatch.
  std::int64_t tokens() const {
    return (samples_.sequence + samples_.decoder) / config_.parallel.cp * rows();
  }

 private:
  std::int64_t rows() const { return rows_of_a_pass(config_.model, config_.batch); }
  Tensor field_of(const BatchField& field) const {
    const bool apart = config_.data.reset_attention || config_.data.between_documents;
    if (field.may_lack && !(field.from == data::Field::documents && apart)) return {};
    const std::int64_t s = samples_.length(field.from) / config_.parallel.cp, b = rows();
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
  const ModelKind& kind_;
  Device& device_;
  Samples samples_;
};

/// More microbatches than these change no peak: a pipeline is full, and all that comes then is alike. A
/// schedule that keeps every one open, or one from a file, is not cut.
int enough(const TrainConfig& c, int microbatches) {
  const ParallelConfig& p = c.parallel;
  const bool known = p.schedule.empty() || p.schedule == "1f1b" || p.schedule == "interleaved" ||
                     p.schedule.starts_with("zb");
  if (!known) return microbatches;
  const int together = int(c.batch.micro / rows_of_a_pass(c.model, c.batch));
  const int full = p.pp == 1 ? 2 : 4 * p.pp * std::max(p.virtual_stages, 1);
  return std::min(microbatches, (full + microbatches % p.pp) * together);
}

int microbatches_of(const TrainConfig& c) {
  return int(c.batch.global / c.parallel.dp / rows_of_a_pass(c.model, c.batch));
}

/// Partial sums of gradients that wait in exact mode (optim/grad_tree.h): as many as the tree over a step's
/// microbatches is deep.
int waiting_sums(int microbatches) { return int(std::bit_width(unsigned(std::max(microbatches - 1, 0)))); }

/// Those that the microbatches which are not counted would add.
std::vector<Tensor> further_sums(const Replica& replica, int levels) {
  std::vector<Tensor> out;
  for (int i = 0; i < levels; ++i)
    for (const WeightBlock& block : replica.weights().blocks())
      out.push_back(empty(replica.device(), block.grads.shape(), Dtype::f32, Use::gradients));
  return out;
}

MemoryMeter count(const TrainConfig& c, int stage, const Colors& colors, const OpenCounter& open) {
  const auto device = open();
  const ParallelLayout layout = layout_of(c.parallel);
  QuietWorld world(layout.rank(counted(layout, stage)), colors);
  const ProcessMesh mesh(layout, world);
  Replica replica(replica_config(c), {*device, mesh});
  const int all = microbatches_of(c), some = enough(c, all);
  std::vector<Batch> batches;
  const Batches made(c, replica.kind(), *device);
  for (int i = 0; i < some; ++i) batches.push_back(made.batch());
  // The rest of a step's batches lie there too.
  const Tensor rest = all > some ? empty(*device, {(all - some) * made.tokens() * 4}, Dtype::i32) : Tensor();
  const int levels = c.model.exact ? waiting_sums(all) - waiting_sums(some) : 0;
  const std::vector<Tensor> sums = further_sums(replica, levels);
  for (int step = 1; step <= 2; ++step)
    (void)replica.step(batches, {.step = step,
                                 .rate = 1e-4,
                                 .ends_rate = 1e-4,
                                 .clip = c.optimizer.clip,
                                 .per_token = c.batch.per_token_loss,
                                 .together = int(c.batch.micro / rows_of_a_pass(c.model, c.batch)),
                                 .count_zeros = c.log.zeros,
                                 .params_norm = c.log.params_norm});
  return device->memory();
}

}  // namespace

Plan plan_run(const TrainConfig& c, const OpenCounter& open) {
  if (bytes_at_least(c) > most_that_can_be_counted)
    fail(Kind::internal, "plan: numbers are too large to be counted");
  Plan plan{.parameters = count_parameters(c.model),
            .tokens = c.batch.global * c.model.sequence,
            .flops = double(c.batch.global) * training_flops(c.model, c.model.sequence),
            .kinds = {}};
  const Colors colors = colors_of(layout_of(c.parallel));
  const int twins = c.parallel.tp * c.parallel.cp * c.parallel.dp;
  for (int stage = 0; stage < c.parallel.pp; ++stage) {
    const MemoryMeter memory = count(c, stage, colors, open);
    const bool alike = !plan.kinds.empty() && plan.kinds.back().memory == memory;
    if (!alike) plan.kinds.push_back({.first = stage, .last = stage, .ranks = 0, .memory = memory});
    plan.kinds.back().last = stage;
    plan.kinds.back().ranks += twins;
  }
  return plan;
}

// Training on one token multiplies every weight of a product thrice, two operations each.
double bytes_at_least(const TrainConfig& c) {
  const double parameters = training_flops(c.model, 1) / 6;
  const bool own_masters = c.model.precision != Precision::f32;
  const double weights = own_masters ? 2 : 4, gradients = 4;
  const double states = (own_masters ? 4 : 0) + (c.optimizer.kind == OptimizerKind::adam ? 8 : 4);
  const auto held = [&](double bytes, int cut_from) {
    return c.parallel.zero >= cut_from ? bytes / (double(c.parallel.dp) * c.parallel.cp) : bytes;
  };
  return parameters * (held(states, 1) + held(gradients, 2) + held(weights, 3));
}

std::int64_t overhead_of_a_process() { return std::int64_t{128} << 20; }

std::int64_t bytes_of_ranks(const Plan& plan, const ParallelConfig& parallel, int first, int last) {
  const ParallelLayout layout = layout_of(parallel);
  std::int64_t bytes = 0;
  for (int rank = first; rank <= last; ++rank) {
    const int stage = layout.at(rank)[std::size_t(Axis::pp)];
    const auto kind = std::ranges::find_if(
        plan.kinds, [&](const KindOfRank& k) { return k.first <= stage && stage <= k.last; });
    bytes += kind->memory.total_peak;
  }
  return bytes;
}

}  // namespace weft
