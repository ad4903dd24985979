// One rank's share of a model and all that trains it: what runs, benchmarks and tests of layouts build alike.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/mesh/mesh.h"
#include "weft/model/kinds.h"
#include "weft/optim/due_update.h"
#include "weft/optim/gathered.h"
#include "weft/optim/grad_reduction.h"
#include "weft/optim/norms.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/scaler.h"
#include "weft/optim/shelf.h"
#include "weft/optim/tied.h"
#include "weft/pipe/runner.h"
#include "weft/train/ahead_counts.h"
#include "weft/train/config.h"
#include "weft/train/fp8_scales.h"
#include "weft/train/greatest_scores.h"
#include "weft/train/routing.h"
#include "weft/train/step.h"

namespace weft {

class StepNumbers;

/// What of a run's settings decides how it is built; a step brings the rest.
struct ReplicaConfig {
  ModelConfig model;
  ModelKind kind = kind_of(model);
  ParallelConfig parallel;
  OptimizerConfig optimizer;
  ScalingConfig scaling;
  bool greatest_scores = false;  // are asked for, whether or not the optimizer looks at them
  std::uint64_t seed = 0;        // of initial weights
  /// Where a device holds no numbers: all rows that can go to one rank's experts go to this one's; or rows
  /// are shared out as this says, [experts].
  bool crowded = false;
  std::vector<std::int64_t> loads = {};
};

/// Where a replica lives: the ranks of the mesh build theirs together.
struct ReplicaPlace {
  Device& device;
  const ProcessMesh& mesh;
};

/// Stages of this rank, their weights, how gradients are reduced, the optimizer, and the runner of the
/// pipeline, which is made anew when a step has another number of microbatches or nobody trains in it.
/// Everything but the accessors is collective over the ranks of the mesh.
class Replica {
 public:
  /// `before_weights` sees every parameter before it gets memory, and may change what others are told of it:
  /// tests plant their mistakes there.
  Replica(const ReplicaConfig& config, const ReplicaPlace& place, const VisitParameter& before_weights = {});
  Replica(const Replica&) = delete;  // parts point at each other
  Replica& operator=(const Replica&) = delete;

  /// Microbatches in, new weights out. A loss or gradient that is not finite leaves the weights alone; the
  /// report says so.
  StepReport step(std::span<const Batch> microbatches, const StepOrder& order);
  /// Forward only; adds to the sums. So many microbatches in a row share one mean, as in a step; 0: none has
  /// a mean of its own, so that it does not show how samples are shared out.
  void evaluate(std::span<const Batch> microbatches, Evaluation& into, int together = 1);
  /// After a step that was not applied: does it again with open eyes. "first seen after attention of layer 3,
  /// samples 17, 18" or "in the gradient of layers.3.mlp.up.weight, samples 17, 18"; all ranks say the same.
  NotFiniteAt find_not_finite(std::span<const Batch> microbatches, const StepOrder& order);
  /// After such a step: fails with Kind::data where the weights themselves are not finite, as then no step
  /// will be applied any more; all ranks say the same.
  void must_have_finite_weights(std::int64_t step) const;

  /// An update that waits for the next forward is made at once; so it is for whoever asks for these.
  void finish_update() const {
    if (due_) due_->finish();
  }
  Weights& weights() { return finish_update(), weights_; }
  const Weights& weights() const { return finish_update(), weights_; }
  Optimizer& optimizer() { return finish_update(), *optimizer_; }
  const Optimizer& optimizer() const { return finish_update(), *optimizer_; }
  /// Null unless the model is f16.
  LossScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  const Fp8Scales& fp8() const { return fp8_; }
  const GradReduction& reduction() const { return reduction_; }
  void each_parameter(const VisitParameter& visit) const;
  /// The same, each while its value is here for layers to read. Collective where weights are cut.
  void each_value(const VisitParameter& visit) const;

  /// That live on this rank, by number.
  const std::map<int, Stage>& stages() const { return stages_; }
  /// The pipeline rank of each stage.
  const std::vector<int>& homes() const { return homes_; }
  const std::vector<StagePart>& parts() const { return parts_; }
  /// How this rank's layers are cut.
  Circles circles() const;
  const ModelKind& kind() const { return config_.kind; }
  const ModelConfig& model() const { return config_.model; }
  /// What is measured, by number.
  std::span<const NamedLoss> losses() const { return losses_; }
  /// What layers compute in, and stages hand on.
  Dtype dtype() const;
  const ProcessMesh& mesh() const { return mesh_; }
  Device& device() const { return device_; }
  /// Most microbatches that training has had open at once.
  int most_remembered() const;

 private:
  enum class For : std::uint8_t { training, evaluation };
  std::map<int, Stage> built(const VisitParameter& before_weights) const;
  DataParallel data_parallel() const;
  std::optional<Offload> offload() const;
  void lend_weights();
  void let_updates_wait();
  void zero_grads();
  void prepare(For purpose, std::size_t microbatches);
  void pack(const Batch& batch);
  pipe::Runner::Order work_on(std::span<const Batch> microbatches, std::span<const LossFactors> factors,
                              const StepPlace& place);
  void count_tokens(std::span<const Batch> microbatches);
  void measure(StepNumbers& numbers, int microbatch, const Pass& pass) const;
  Look looks_at() const;
  void look(StepNumbers& numbers, const StepOrder& order, StepReport& report);
  /// What went through all ranks' layers: microbatches of each, so many to a mean, and what counts of them.
  struct Whole {
    std::size_t microbatches = 0;
    int together = 1;
    double tokens = 0, samples = 0;
  };
  double terms_of(LossMean mean, const Whole& whole) const;
  // ---- experts
  void weigh_balance(std::span<const Batch> microbatches, const StepOrder& order, const StepReport& report);
  ExpertCircles expert_circles() const;
  std::vector<std::int64_t> crowded_loads() const;
  void begin_routing() const;
  void collect_routing();
  /// What routers add to scores follows the counts of the step, before any weight changes.
  void follow_routing() const;
  void update(const StepOrder& order, StepReport& report);
  /// Weights shrink where scores were too large. Not of a step in which one was no number.
  void clip_scores();
  /// One microbatch, forward and backward, on all ranks of the model.
  void do_again(const Batch& batch, const StepOrder& order, Watch& watch);
  Communicator& pp() const { return mesh_.along(Axis::pp); }

  ReplicaConfig config_;
  Device& device_;
  const ProcessMesh& mesh_;
  std::vector<NamedLoss> losses_;
  std::vector<int> homes_;
  ContextLevels levels_;          // where context parallelism has two
  std::vector<StagePart> parts_;  // of all stages
  std::map<int, Stage> stages_;
  Fp8Scales fp8_;                   // of their products, where these are of eight bits
  std::optional<Offload> offload_;  // read while weights are made
  Weights weights_;
  std::vector<std::unique_ptr<Lender>> lenders_;  // one a stage or two, where weights are not simply here
  std::unique_ptr<DueUpdate> due_;                // where states are in files and can wait
  GradReduction reduction_;
  std::optional<TiedWeights> tied_;  // where a weight may live in two stages
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<LossScaler> scaler_;
  For prepared_for_ = For::training;
  pipe::Schedule schedule_;
  std::unique_ptr<pipe::Runner> runner_;
  std::vector<pipe::Parcel> parcels_;  // by stage, of the microbatches at hand
  RoutingTable routing_;
  std::vector<const Stage*> routed_stages_;
  GreatestScores scores_;
  int most_remembered_ = 0;  // by runners that are gone
  // A number a microbatch, kept from step to step: the steady state asks the heap for nothing.
  std::vector<double> counts_;
  std::vector<LossFactors> factors_;
  AheadCounts ahead_;
  std::vector<float> shares_;  // of a counting token, in the mean over its microbatch
};

}  // namespace weft
