// 1-bit Adam: Adam until the second moments are known; from then on they stay, gradients stay where they
// are, and momentum travels in one bit an element.
#include <optional>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/rules.h"
#include "weft/optim/sign_reduction.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

/// No bias correction anywhere, as in the original. Elements whose gradient was zero until the freeze have no
/// second moment: their momentum is zero, or what signs make of it would be divided by epsilon.
class OneBitAdam final : public Optimizer {
 public:
  OneBitAdam(Weights& weights, const OptimizerConfig& config)
      : weights_(weights), config_(config), m_(weights, ".m"), v_(weights, ".v") {
    std::vector<std::int64_t> elements;
    for (std::size_t i = 0; i < weights.blocks().size(); ++i) {
      const WeightBlock& block = weights.blocks()[i];
      for (const WeightSlot& slot : block.slots) {
        elements.push_back(slot.parameter->shape.elements());
        momenta_.push_back(m_.of(i, {slot.at, slot.at, elements.back()}));
        tensors_.push_back({slot.parameter, &block});
      }
    }
    if (weights.data().mesh == nullptr) return;
    Communicator& circle = weights.data().mesh->along(data_axes(View::dense));
    if (circle.size() > 1) signs_.emplace(weights.device(), circle, elements);
    of_ranks_.readers = {&circle, CutUp::states};
  }

  bool wants_sums() const override { return updates_ + 1 < config_.onebit.freeze; }

  void update(const UpdateArgs& args) override {
    const bool warm = wants_sums();
    ++updates_;
    if (warm) return each_run(weights_, args, [&](const UpdateRun& run) { step(run, args.grad_scale, 1); });
    const int ranks = signs_ ? weights_.blocks().front().readers.ranks() : 1;
    each_run(weights_, args, [&](const UpdateRun& run) { add_to_momentum(run, args.grad_scale * ranks); });
    if (signs_) signs_->reduce(momenta_);
    each_run(weights_, args, [&](const UpdateRun& run) {
      leave_out_dead(run);
      step(run, 1, 0);
    });
  }

  void each_state(const VisitHeld& visit) const override {
    m_.each(weights_, visit);
    v_.each(weights_, visit);
    for (std::size_t i = 0; signs_ && i < tensors_.size(); ++i) {
      visit(error(i, ".worker_error", signs_->worker_errors()[i]));
      visit(error(i, ".server_error", signs_->server_errors()[i]));
    }
  }

 private:
  struct OneTensor {
    const Parameter* parameter;
    const WeightBlock* block;
  };

  /// With moments that learn, or with those that there are.
  void step(const UpdateRun& run, double grad_scale, float learns) {
    ops::adam_into({run.master, m_.of(run.number, run.own), v_.of(run.number, run.own), run.copy}, run.grads,
                   {.rate = float(run.rate),
                    .beta1 = learns != 0 ? float(config_.beta1) : 1,
                    .beta2 = learns != 0 ? float(config_.beta2) : 1,
                    .epsilon = float(config_.epsilon),
                    .decay = float(run.decay),
                    .grad_scale = float(grad_scale)});
  }

  void add_to_momentum(const UpdateRun& run, double grad_scale) const {
    const Tensor m = m_.of(run.number, run.own);
    ops::scale_in_place(m, float(config_.beta1));
    ops::add_scaled_into(m, run.grads, float((1 - config_.beta1) * grad_scale));
  }

  // sqrt(v) / sqrt(v) where there is any, else 0, written where gradients lay.
  void leave_out_dead(const UpdateRun& run) const {
    const Tensor v = v_.of(run.number, run.own), m = m_.of(run.number, run.own);
    ops::root_into(run.grads, v, 0);
    ops::adam_direction_into({run.master, run.grads, v, {}}, run.grads,
                             {.beta1 = 1, .beta2 = 1, .epsilon = 1e-30F});
    ops::multiply_into(m, m, run.grads);
  }

  /// A rank's row of the table that all data- and tensor-parallel ranks' errors would make.
  Held error(std::size_t i, const char* suffix, const Tensor& memory) const {
    const Parameter& parameter = *tensors_[i].parameter;
    const ProcessMesh& mesh = *weights_.data().mesh;
    const Communicator &data = mesh.along(data_axes(View::dense)), &tensor = mesh.along(Axis::tp);
    const Shard row{.global = {data.size(), tensor.size(), memory.elements()},
                    .offset = {data.rank(), tensor.rank(), 0},
                    .local = {1, 1, memory.elements()},
                    .replica = parameter.tied ? weights_.ties().copy(parameter) : 0};
    return {parameter.name + suffix, parameter, memory, {{row, 0}}, of_ranks_, true};
  }

  Weights& weights_;
  OptimizerConfig config_;
  State m_, v_;
  std::vector<OneTensor> tensors_;
  std::vector<Tensor> momenta_;  // of each parameter
  std::optional<SignReduction> signs_;
  WeightBlock of_ranks_;  // stands for where errors are: every rank has its own
};

}  // namespace

OptimizerRule onebit_adam_rule() {
  return {
      .kind = OptimizerKind::onebitadam,
      .state_bytes = [](const OptimizerConfig&) { return 8.0; },  // with errors, of several ranks, 12 or more
      .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
        return std::make_unique<OneBitAdam>(weights, config);
      }};
}

}  // namespace weft
