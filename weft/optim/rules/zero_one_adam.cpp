// 0/1 Adam: ranks tell one another gradients in one bit, then only now and then how far they went.
#include "weft/optim/rules/zero_one_adam.h"

#include <algorithm>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/rules.h"
#include "weft/optim/rules/one_bit.h"
#include "weft/tensor/host.h"

namespace weft {

bool ZeroOneSchedule::advance() {
  const bool was_frozen = frozen_;
  if (was_frozen) {
    apart_ = !meets();
    if (++local_steps_ == config_.local_steps) {
      local_steps_ = 0;
      local_interval_ = std::min<std::int64_t>(config_.most_local, 2 * local_interval_);
    }
  } else if (learns() && ++variance_steps_ == config_.variance_steps) {
    variance_steps_ = 0;
    variance_interval_ *= 2;
  }
  frozen_ = step_ > config_.freeze;
  ++step_;
  return frozen_ && !was_frozen;
}

void ZeroOneSchedule::seek(std::int64_t updates) {
  *this = ZeroOneSchedule(config_);
  for (std::int64_t i = 0; i < updates; ++i) (void)advance();
}

namespace {

/// While ranks go alone, weights are what all agreed on last plus this rank's own steps since: agreed weights
/// have the same bits on all ranks, and checkpoints hold those.
class ZeroOneAdam final : public Optimizer {
 public:
  ZeroOneAdam(Weights& weights, const OptimizerConfig& config)
      : weights_(weights),
        config_(config),
        schedule_(config.zeroone),
        m_(weights, ".m"),
        v_(weights, ".v"),
        steps_(weights, ".steps"),
        tensors_(one_bit_tensors(weights)),
        mail_(weights, tensors_),
        rates_(ops::zeros(weights.device(), {std::ssize(weights.blocks())}, Dtype::f32, Use::optimizer)),
        sums_of_rates_(weights.blocks().size()) {
    for (const OneBitTensor& tensor : tensors_) {
      const WeightBlock& block = weights.blocks()[tensor.block];
      grads_.push_back(block.grad_of(tensor.part()));
      gone_.push_back(steps_.of(tensor.block, tensor.part()));
    }
    for (const WeightBlock& block : weights.blocks())
      agreed_.push_back(ops::zeros(weights.device(), {block.kept}, Dtype::f32, Use::optimizer));
  }

  bool wants_sums() const override { return schedule_.learns(); }

  void update(const UpdateArgs& args) override {
    ++updates_;
    if (schedule_.frozen())
      go_alone(args);
    else if (schedule_.learns())
      each_run(weights_, args, [&](const UpdateRun& run) { step(run, Moments::learn, args.grad_scale); });
    else
      follow_signs(args);
    if (!schedule_.advance()) return;
    mail_.forget_errors();
    each_run(weights_, args, [&](const UpdateRun& run) { ops::copy_into(agreed(run), run.master); });
  }

  void set_updates(std::int64_t updates) override {
    Optimizer::set_updates(updates);
    schedule_.seek(updates);
  }
  std::span<const Tensor> agreed() const override {
    return schedule_.apart() ? std::span<const Tensor>(agreed_) : std::span<const Tensor>();
  }
  void loaded() override {
    read(rates_, std::span<float>(sums_of_rates_));
    each_run(weights_, {}, [&](const UpdateRun& run) {
      ops::copy_into(agreed(run), run.master);
      if (schedule_.apart()) ops::add_into(run.master, run.master, gone(run));
    });
  }

  void each_state(const VisitHeld& visit) const override {
    v_.each(weights_, visit);
    if (schedule_.apart())
      each_own(visit);
    else
      m_.each(weights_, visit);
    mail_.each_error(visit);
  }

 private:
  Tensor momentum(const UpdateRun& run) const { return m_.of(run.number, run.own); }
  Tensor variance(const UpdateRun& run) const { return v_.of(run.number, run.own); }
  Tensor gone(const UpdateRun& run) const { return steps_.of(run.number, run.own); }
  Tensor agreed(const UpdateRun& run) const {
    return agreed_[run.number].slice(0, run.own.kept, run.own.count);
  }
  void step(const UpdateRun& run, Moments moments, double grad_scale) const {
    step_without_corrections(run, {run.master, momentum(run), variance(run), run.copy}, config_, moments,
                             grad_scale);
  }

  /// Gradients travel in one bit, and second moments wait.
  void follow_signs(const UpdateArgs& args) {
    each_run(weights_, args, [&](const UpdateRun& run) {
      ops::scale_in_place(run.grads, float(args.grad_scale * run.block.readers.ranks()));
    });
    mail_.reduce(grads_);
    each_run(weights_, args, [&](const UpdateRun& run) {
      add_to_momentum(run, momentum(run), config_.beta1, 1);
      leave_out_dead(run, momentum(run), variance(run));
      step(run, Moments::stay, 1);
    });
  }

  void go_alone(const UpdateArgs& args) {
    each_run(weights_, args, [&](const UpdateRun& run) {
      const Tensor m = momentum(run), v = variance(run);
      add_to_momentum(run, m, config_.beta1, args.grad_scale * run.block.readers.ranks());
      leave_out_dead(run, m, v);
      direction_into_grads(run, m, v, config_.epsilon, run.decay);
      ops::add_scaled_into(gone(run), run.grads, float(-run.rate));
      ops::add_into(run.master, agreed(run), gone(run));
      publish(run);
    });
    add_rates(args);
    if (schedule_.meets()) meet(args);
  }

  // u (sqrt(v) + epsilon) is a sum of momenta times rates, whose mean is told.
  void meet(const UpdateArgs& args) {
    each_run(weights_, args, [&](const UpdateRun& run) {
      ops::root_into(run.grads, variance(run), float(config_.epsilon));
      ops::multiply_into(gone(run), gone(run), run.grads);
    });
    mail_.reduce(gone_);
    each_run(weights_, args, [&](const UpdateRun& run) { settle(run); });
    std::ranges::fill(sums_of_rates_, 0.F);
    ops::fill(rates_, 0);
  }

  void settle(const UpdateRun& run) const {
    const Tensor m = momentum(run), u = gone(run);
    if (run.block.readers.ranks() > 1) leave_out_dead(run, u, variance(run));
    ops::copy_into(m, u);
    const float rates = sums_of_rates_[run.number];
    ops::scale_in_place(m, rates > 0 ? -1 / rates : 0);
    direction_into_grads(run, u, variance(run), config_.epsilon, 0);
    ops::add_into(run.master, agreed(run), run.grads);
    ops::copy_into(agreed(run), run.master);
    ops::fill(u, 0);
    publish(run);
  }

  static void publish(const UpdateRun& run) {
    if (run.copy) ops::copy_into(run.copy, run.master);
  }

  void add_rates(const UpdateArgs& args) {
    for (std::size_t i = 0; i < sums_of_rates_.size(); ++i)
      sums_of_rates_[i] += float(rate_of(weights_.blocks()[i].kind, args));
    copy_to<float>(rates_, sums_of_rates_);
  }

  void each_own(const VisitHeld& visit) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const OneBitTensor& tensor = tensors_[i];
      const Parameter& parameter = *tensor.slot->parameter;
      const View view = weights_.blocks()[tensor.block].kind.view;
      visit(mail_.of_rank(parameter, view, ".own_m", m_.of(tensor.block, tensor.part())));
      visit(mail_.of_rank(parameter, view, ".own_steps", gone_[i]));
      visit(mail_.of_rank(parameter, view, ".own_rates", rates_.slice(0, std::int64_t(tensor.block), 1)));
    }
  }

  Weights& weights_;
  OptimizerConfig config_;
  ZeroOneSchedule schedule_;
  State m_, v_, steps_;
  std::vector<OneBitTensor> tensors_;
  std::vector<Tensor> grads_, gone_;  // of each
  OneBitMail mail_;
  std::vector<Tensor> agreed_;        // a block each
  Tensor rates_;                      // f32 [blocks]: the sum of rates since ranks met
  std::vector<float> sums_of_rates_;  // the same
};

}  // namespace

OptimizerRule zero_one_adam_rule() {
  return {.kind = OptimizerKind::zerooneadam,
          .state_bytes =
              [](const OptimizerConfig&) { return 16.0; },  // with errors, of several ranks, 20 or more
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<ZeroOneAdam>(weights, config);
          }};
}

}  // namespace weft
