// SGD with momentum over flat blocks.
#include "weft/ops/adam.h"
#include "weft/optim/rules.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(Weights& weights, double momentum)
      : weights_(weights), momentum_(momentum), velocity_(weights, ".momentum") {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    grad_scale_ = args.grad_scale;
    each_run_when_due(weights_, args, [this](const UpdateRun& run) {
      ops::sgd_into({run.master, velocity_.of(run.number, run.own), run.copy}, run.grads,
                    {.rate = float(run.rate),
                     .momentum = float(momentum_),
                     .decay = float(run.decay),
                     .grad_scale = float(grad_scale_)});
    });
    weights_.gather();
  }
  void each_state(const VisitHeld& visit) const override { velocity_.each(weights_, visit); }

 private:
  Weights& weights_;
  double momentum_, grad_scale_ = 1;
  State velocity_;
};

}  // namespace

OptimizerRule sgd_rule() {
  return {.kind = OptimizerKind::sgd,
          .state_bytes = [](const OptimizerConfig&) { return 4.0; },
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Sgd>(weights, config.momentum);
          }};
}

}  // namespace weft
