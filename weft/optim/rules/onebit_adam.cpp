// 1-bit Adam: Adam until the second moments are known; from then on they stay, gradients stay where they
// are, and momentum travels in one bit an element.
#include "weft/optim/rules.h"
#include "weft/optim/rules/one_bit.h"

namespace weft {
namespace {

/// No bias correction anywhere, as in the original.
class OneBitAdam final : public Optimizer {
 public:
  OneBitAdam(Weights& weights, const OptimizerConfig& config)
      : weights_(weights),
        config_(config),
        m_(weights, ".m"),
        v_(weights, ".v"),
        tensors_(one_bit_tensors(weights)),
        mail_(weights, tensors_) {
    for (const OneBitTensor& tensor : tensors_) momenta_.push_back(m_.of(tensor.block, tensor.part()));
  }

  bool wants_sums() const override { return updates_ + 1 < config_.onebit.freeze; }

  void update(const UpdateArgs& args) override {
    const bool warm = wants_sums();
    ++updates_;
    if (warm)
      return each_run(weights_, args,
                      [&](const UpdateRun& run) { step(run, Moments::learn, args.grad_scale); });
    each_run(weights_, args, [&](const UpdateRun& run) {
      add_to_momentum(run, m_.of(run.number, run.own), config_.beta1,
                      args.grad_scale * run.block.readers.ranks());
    });
    mail_.reduce(momenta_);
    each_run(weights_, args, [&](const UpdateRun& run) {
      leave_out_dead(run, m_.of(run.number, run.own), v_.of(run.number, run.own));
      step(run, Moments::stay, 1);
    });
  }

  void each_state(const VisitHeld& visit) const override {
    m_.each(weights_, visit);
    v_.each(weights_, visit);
    mail_.each_error(visit);
  }

 private:
  void step(const UpdateRun& run, Moments moments, double grad_scale) {
    step_without_corrections(run,
                             {run.master, m_.of(run.number, run.own), v_.of(run.number, run.own), run.copy},
                             config_, moments, grad_scale);
  }

  Weights& weights_;
  OptimizerConfig config_;
  State m_, v_;
  std::vector<OneBitTensor> tensors_;
  std::vector<Tensor> momenta_;  // of each
  OneBitMail mail_;
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
