// LAMB as DeepSpeed's kernel has it: Adam's direction, gone in each tensor by a length that follows the
// tensor's own.
#include <cmath>

#include "weft/ops/adam.h"
#include "weft/optim/rules.h"
#include "weft/optim/states.h"
#include "weft/optim/tensor_norms.h"

namespace weft {
namespace {

/// Directions lie where gradients lay, until the norms of all tensors are known.
class Lamb final : public Optimizer {
 public:
  Lamb(Weights& weights, const OptimizerConfig& config)
      : weights_(weights), config_(config), m_(weights, ".m"), v_(weights, ".v"), norms_(weights, 2) {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    betas_ = args.betas.value_or(Betas{config_.beta1, config_.beta2});
    norms_.clear();
    each_run(weights_, args, [&](const UpdateRun& run) { look(run, args); });
    const Tensor ratios = norms_.ratios({.least = config_.lamb.least, .most = config_.lamb.most});
    each_run(weights_, args, [&](const UpdateRun& run) { go(run, ratios); });
    weights_.gather();
  }
  void each_state(const VisitHeld& visit) const override {
    m_.each(weights_, visit);
    v_.each(weights_, visit);
  }

 private:
  static constexpr int weight = 0, direction = 1;  // whose norm

  void look(const UpdateRun& run, const UpdateArgs& args) {
    ops::adam_direction_into({run.master, m_.of(run.number, run.own), v_.of(run.number, run.own), {}},
                             run.grads,
                             {.beta1 = float(betas_.first),
                              .beta2 = float(betas_.second),
                              .epsilon = float(config_.epsilon),
                              .decay = float(run.decay),
                              .grad_scale = float(args.grad_scale),
                              .epsilon_inside = config_.lamb.epsilon_inside});
    norms_.add(weight, run.number, run.own, run.master);
    norms_.add(direction, run.number, run.own, run.grads);
  }

  // By ratios of the norm of a tensor's weights over that of its direction, which the host does not wait for.
  void go(const UpdateRun& run, const Tensor& ratios) const {
    norms_.each_tensor(run.number, run.own, [&](const TensorRun& part) {
      const Tensor copy = run.copy ? run.copy.slice(0, part.from, part.count) : Tensor();
      ops::descend_into(
          run.master.slice(0, part.from, part.count), copy, run.grads.slice(0, part.from, part.count),
          {.rate = float(run.rate * correction()), .by = ratios.slice(0, std::int64_t(part.tensor), 1)});
    });
  }

  double correction() const {
    if (!config_.lamb.bias_correction) return 1;
    const auto updates = double(updates_);
    return std::sqrt(1 - std::pow(betas_.second, updates)) / (1 - std::pow(betas_.first, updates));
  }

  Weights& weights_;
  OptimizerConfig config_;
  Betas betas_;  // of this update
  State m_, v_;
  TensorNorms norms_;
};

}  // namespace

OptimizerRule lamb_rule() {
  return {.kind = OptimizerKind::lamb,
          .state_bytes = [](const OptimizerConfig&) { return 8.0; },
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Lamb>(weights, config);
          }};
}

}  // namespace weft
