// Adam over flat blocks: one pass reads the gradient and writes master, moments and the copy that layers
// read.
#include <cmath>

#include "weft/ops/adam.h"
#include "weft/optim/rules.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

Dtype dtype_of_moment(MomentType type) {
  switch (type) {
    case MomentType::fp32:
      return Dtype::f32;
    case MomentType::bf16:
      return Dtype::bf16;
    case MomentType::fp16:
      return Dtype::f16;
    case MomentType::fp8:
      return Dtype::f8e5m2;
  }
  return Dtype::f32;
}

class Adam final : public Optimizer {
 public:
  Adam(Weights& weights, const OptimizerConfig& config)
      : weights_(weights),
        config_(config),
        m_(weights, ".m", dtype_of_moment(config.first_moment)),
        v_(weights, ".v", dtype_of_moment(config.second_moment)) {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    const Betas betas = args.betas.value_or(Betas{config_.beta1, config_.beta2});
    how_ = {.beta1 = float(betas.first),
            .beta2 = float(betas.second),
            .correction1 = float(1 - std::pow(betas.first, double(updates_))),
            .correction2 = float(1 - std::pow(betas.second, double(updates_))),
            .grad_scale = float(args.grad_scale),
            .decoupled = config_.decoupled_decay,
            .dice = std::uint32_t(updates_)};
    width_ = args.width;
    each_run_when_due(weights_, args, [this](const UpdateRun& run) { update_run(run); });
    weights_.gather();
  }
  void each_state(const VisitHeld& visit) const override {
    m_.each(weights_, visit);
    v_.each(weights_, visit);
  }

 private:
  void update_run(const UpdateRun& run) {
    const bool by_width = run.block.kind.pace == Pace::by_width;
    how_.rate = float(run.rate);
    how_.epsilon = float(by_width ? config_.epsilon / width_ : config_.epsilon);
    how_.decay = float(run.decay);
    ops::adam_into({run.master, m_.of(run.number, run.own), v_.of(run.number, run.own), run.copy}, run.grads,
                   how_);
  }

  Weights& weights_;
  OptimizerConfig config_;
  AdamArgs how_ = {};  // of this update
  double width_ = 1;
  State m_, v_;
};

}  // namespace

OptimizerRule adam_rule() {
  return {.kind = OptimizerKind::adam,
          .state_bytes =
              [](const OptimizerConfig& config) {
                return double(size_of(dtype_of_moment(config.first_moment)) +
                              size_of(dtype_of_moment(config.second_moment)));
              },
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Adam>(weights, config);
          }};
}

}  // namespace weft
