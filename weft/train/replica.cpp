// How the parts of a replica are put together: the only place where that is decided.
#include "weft/train/replica.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/mesh/samples.h"
#include "weft/model/count.h"
#include "weft/optim/rules.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

/// Megatron's sizes: a bucket a block, or where buckets leave during backward, buckets that are worth a trip.
std::int64_t bucket_elements(const ReplicaConfig& config, int data_ranks) {
  const ParallelConfig& p = config.parallel;
  if (p.buckets > 0) return count_parameters(config.model).total() / p.buckets;
  if (p.bucket_elements > 0) return p.bucket_elements;
  // Every layer's are cut, or rounded, as soon as they are there.
  if (p.zero > 1 || config.scaling.sum_in_bf16) return 1;
  return p.overlap_reduce ? std::max<std::int64_t>(40'000'000, 1'000'000 * std::int64_t{data_ranks}) : 0;
}

LossScaler scaler_of(const ScalingConfig& s) {
  return LossScaler({.constant = s.constant,
                     .initial = s.initial,
                     .least = s.least,
                     .window = int(s.window),
                     .hysteresis = s.hysteresis});
}

/// Megatron's rule: of vectors, only the norms of queries and keys may be decayed.
void decay_head_norms(Parameter& parameter) {
  for (const char* norm : {".q_norm.", ".k_norm."})
    if (parameter.name.find(norm) != std::string::npos) parameter.decays = true;
}

/// Megatron's classes of muP: matrices between widths of the model, which adam teaches by the width, and all
/// that is as long as it is wide, which sgd does; tables, of positions or distances, are read a row at a time
/// and no products. Words have a rate of their own, muon's matrices a scale.
void follow_width(Parameter& parameter, OptimizerKind optimizer) {
  if (parameter.role == Role::words || optimizer == OptimizerKind::muon) return;
  const bool table = parameter.name.starts_with("embedding.") || parameter.name.ends_with(".distances");
  const bool matrix = parameter.shape.rank() > 1 && !table;
  if (matrix == (optimizer != OptimizerKind::sgd)) parameter.pace = Pace::by_width;
}

ContextLevels levels_of(const ParallelConfig& p, Communicator& circle) {
  if (p.context_levels.empty()) return {};
  return context_levels(circle, p.context_levels.front());
}

/// Exact mode's sums are the same trees, whoever holds their leaves.
const ProcessMesh& for_sums_of(const ReplicaConfig& config, const ProcessMesh& mesh) {
  if (config.model.exact && !mesh.world().adds_as_trees())
    fail(Kind::usage, "{model.exact} adds over ranks as balanced trees, and ", mesh.world().carrier(),
         " adds in an order of its own: run the ranks as threads or under MPI, or leave {model.exact} out");
  return mesh;
}

}  // namespace

Replica::Replica(const ReplicaConfig& config, const ReplicaPlace& place, const VisitParameter& before_weights)
    : config_(config),
      device_(place.device),
      mesh_(for_sums_of(config, place.mesh)),
      losses_(config.kind.losses(config.model)),
      homes_(homes_of(config.parallel)),
      levels_(levels_of(config.parallel, place.mesh.along(Axis::cp))),
      parts_(stages_of(config.kind, config.model, config.parallel)),
      stages_(built(before_weights)),
      fp8_(stages_, mesh_, device_),
      offload_(offload()),
      weights_([this](const VisitParameter& visit) { each_parameter(visit); }, device_, dtype(),
               Weights::For::training, data_parallel()),
      reduction_(
          weights_,
          config.parallel.overlap_reduce ? ReduceWhen::when_a_bucket_is_full : ReduceWhen::after_backward,
          sums_of(config.model), config.parallel.reduce_once ? AddFirst::microbatches : AddFirst::ranks),
      routing_(config_.model, mesh_, device_),
      scores_(config_.model, mesh_, device_, config.greatest_scores || config.optimizer.qk_clip.on) {
  if (losses_.empty() || losses_.size() > ByLoss<double>::most)
    fail(Kind::internal, "replica: ", losses_.size(), " losses, there is room for 1 to ",
         ByLoss<double>::most);
  weights_.initialize(config.seed);
  lend_weights();
  let_updates_wait();
  if (homes_.size() > 1 || sums_of(config.model).uses_apart()) tied_.emplace(weights_);
  optimizer_ = make_optimizer(weights_, config.optimizer);
  if (weights_.shelf() != nullptr) weights_.shelf()->must_have_room();
  if (config.model.precision == Precision::f16) scaler_ = scaler_of(config.scaling);
}

std::map<int, Stage> Replica::built(const VisitParameter& before_weights) const {
  std::map<int, Stage> out;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (homes_[i] == pp().rank()) out[int(i)] = kind().build(config_.model, parts_[i], circles(), device_);
  if (config_.optimizer.decay_qk_norm)
    for (const auto& [number, stage] : out) stage.each_parameter(decay_head_norms);
  if (width_of(config_.model) != 1)
    for (const auto& [number, stage] : out)
      stage.each_parameter([this](Parameter& p) { follow_width(p, config_.optimizer.kind); });
  if (before_weights)
    for (const auto& [number, stage] : out) stage.each_parameter(before_weights);
  int layer = 0;
  for (const auto& [number, stage] : out)
    for (const auto& part : stage.layers) {
      part->each_parameter([&](Parameter& p) { p.layer = layer; });
      ++layer;
    }
  return out;
}

void Replica::lend_weights() {
  if (std::ranges::none_of(weights_.blocks(), &WeightBlock::lent)) return;
  for (auto& [number, stage] : stages_) {
    lenders_.push_back(std::make_unique<GatheredWeights>(weights_, stage));
    stage.lender = lenders_.back().get();
  }
}

// Where nothing has numbers no disk is waited for.
void Replica::let_updates_wait() {
  if (!device_.holds_numbers() || !updates_by_element(config_.optimizer.kind)) return;
  if (!DueUpdate::possible(weights_)) return;
  due_ = std::make_unique<DueUpdate>(weights_, stages_);
  weights_.let_wait(due_.get());
  int first = 0;
  for (auto& [number, stage] : stages_) {
    lenders_.push_back(std::make_unique<DueLender>(*due_, first, stage.lender));
    stage.lender = lenders_.back().get();
    first += int(stage.layers.size());
  }
}

void Replica::each_value(const VisitParameter& visit) const {
  for (const auto& [number, stage] : stages_)
    for (std::size_t i = 0; i < stage.layers.size(); ++i) {
      const Lease lease(stage.lender, int(i), Way::forward);
      stage.layers[i]->each_parameter(visit);
    }
}

DataParallel Replica::data_parallel() const {
  const ScalingConfig& s = config_.scaling;
  const WireConfig& wire = config_.parallel.wire;
  return {.mesh = &mesh_,
          .cut = CutUp(config_.parallel.zero),
          .bucket = bucket_elements(config_, mesh_.along(data_axes(View::dense)).size()),
          .groups = config_.parallel.shard_groups,
          .near = config_.parallel.near_ranks,
          .wire = s.reduce_in_bf16 || s.sum_in_bf16 ? Dtype::bf16 : Dtype::f32,
          .weight_block = wire.weights ? wire.weight_block : 0,
          .gradient_block = wire.gradients ? wire.gradient_block : 0,
          .sums = s.sum_in_bf16 ? Dtype::bf16 : Dtype::f32,
          .offload = offload_ ? &*offload_ : nullptr};
}

std::optional<Offload> Replica::offload() const {
  const OffloadConfig& o = config_.optimizer.offload;
  if (!o.on) return std::nullopt;
  // Where nothing has numbers, nothing is written.
  return Offload{.place = {.directory = device_.holds_numbers() ? o.directory : std::string(),
                           .name = text("states-of-rank-", mesh_.world().rank()),
                           .fraction = o.fraction},
                 .windows_here = o.buffers,
                 .weights = o.weights};
}

void Replica::each_parameter(const VisitParameter& visit) const {
  for (const auto& [number, stage] : stages_) stage.each_parameter(visit);
}

Circles Replica::circles() const {
  const int sharers = key_sharers(config_.model, config_.parallel.tp);
  return {.tp = mesh_.along(Axis::tp),
          .between = config_.parallel.sequence ? Between::sequence_cut : Between::whole,
          .context = {.circle = &mesh_.along(Axis::cp),
                      .form = config_.parallel.context,
                      .inner = levels_.inner.get(),
                      .outer = levels_.outer.get()},
          .context_layers = config_.parallel.context_layers,
          .keys = sharers > 1 ? &mesh_.neighbours(Axis::tp, sharers) : nullptr,
          .experts = expert_circles()};
}

/// Exact sums over tokens have whole sequences as leaves: all ranks that share one see all of it.
ExpertCircles Replica::expert_circles() const {
  const ParallelLayout& layout = mesh_.layout();
  if (!layout.has(View::experts)) return {};
  const int etp = layout.degree(Axis::etp), ep = layout.degree(Axis::ep);
  Communicator& sequences = mesh_.along({Axis::tp, Axis::cp});
  const bool wider = sums_of(config_.model).whole_sequences() && sequences.size() > etp * ep;
  return {.ranks = {.circle = wider ? &sequences : &mesh_.along({Axis::etp, Axis::ep}),
                    .etp = etp,
                    .ep = ep,
                    .sequence_ranks = sequences.size(),
                    .loads = config_.crowded ? crowded_loads() : config_.loads},
          .sequences = &sequences,
          .batch = &mesh_.along(stage_axes)};
}

/// As many of a token's experts as can be are among this rank's, any of them.
std::vector<std::int64_t> Replica::crowded_loads() const {
  const ExpertsConfig& x = config_.model.experts;
  const int ep = mesh_.layout().degree(Axis::ep), each = x.count / ep, first = mesh_.place(Axis::ep) * each;
  const std::int64_t here = std::min(each, x.router.chosen), others = x.router.chosen - here;
  if (ep == 1) return {};
  std::vector<std::int64_t> loads(std::size_t(x.count), others * each);
  std::fill_n(loads.begin() + first, each, here * (x.count - each));
  return loads;
}

Dtype Replica::dtype() const { return compute_type(config_.model.precision); }

int Replica::most_remembered() const {
  const bool trains = runner_ && prepared_for_ == For::training;
  return trains ? std::max(most_remembered_, runner_->most_remembered()) : most_remembered_;
}

void Replica::prepare(For purpose, std::size_t microbatches) {
  if (runner_ && prepared_for_ == purpose && schedule_.microbatches == int(microbatches)) return;
  most_remembered_ = most_remembered();
  runner_.reset();
  prepared_for_ = purpose;
  schedule_ = purpose == For::training ? schedule_of(config_.parallel, int(microbatches))
                                       : evaluation_of(config_.parallel, int(microbatches));
  runner_ = std::make_unique<pipe::Runner>(schedule_, stages_, pp(), device_);
}

void Replica::pack(const Batch& batch) {
  const CutOver cut = cut_over(config_.parallel);
  parcels_.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Carried carried = kind().carried(config_.model, parts_[i], batch, cut);
    parcels_[i] = {.hidden = carried.hidden,
                   .memory = carried.memory,
                   .biases = carried.biases,
                   .dtype = dtype(),
                   .residual = residual_type(config_.model)};
  }
}

}  // namespace weft
