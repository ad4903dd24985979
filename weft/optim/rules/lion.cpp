// Lion: every weight goes by the same length, whatever the size of its gradient.
#include "weft/ops/adam.h"
#include "weft/optim/rules.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

class Lion final : public Optimizer {
 public:
  Lion(Weights& weights, const LionConfig& config)
      : weights_(weights), config_(config), m_(weights, ".momentum") {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    betas_ = args.betas.value_or(Betas{config_.beta1, config_.beta2});
    grad_scale_ = args.grad_scale;
    each_run_when_due(weights_, args, [this](const UpdateRun& run) {
      ops::lion_into({run.master, m_.of(run.number, run.own), run.copy}, run.grads,
                     {.rate = float(run.rate),
                      .beta1 = float(betas_.first),
                      .beta2 = float(betas_.second),
                      .decay = float(run.decay),
                      .grad_scale = float(grad_scale_)});
    });
    weights_.gather();
  }
  void each_state(const VisitHeld& visit) const override { m_.each(weights_, visit); }

 private:
  Weights& weights_;
  LionConfig config_;
  Betas betas_;  // of this update
  double grad_scale_ = 1;
  State m_;
};

}  // namespace

OptimizerRule lion_rule() {
  return {.kind = OptimizerKind::lion,
          .state_bytes = [](const OptimizerConfig&) { return 4.0; },
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Lion>(weights, config.lion);
          }};
}

}  // namespace weft
