// Adam and SGD over flat blocks: one pass reads the gradient and writes master, moments and the copy that
// layers read.
#include "weft/optim/optimizer.h"

#include <cmath>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// A state of what this rank updates, one tensor a block.
std::vector<Tensor> kept_zeros(const Weights& weights) {
  std::vector<Tensor> out;
  for (const WeightBlock& block : weights.blocks())
    out.push_back(ops::zeros(weights.device(), {block.kept}, Dtype::f32, Use::optimizer));
  return out;
}

/// The copy that layers read; empty where they read the master itself.
Tensor copy_of(const WeightBlock& block, const OwnedPart& own) {
  return block.master_is_values() ? Tensor() : block.values.slice(0, own.at, own.count);
}

Tensor kept_of(const Tensor& state, const OwnedPart& own) { return state.slice(0, own.kept, own.count); }

Tensor grads_of(const WeightBlock& block, const OwnedPart& own) {
  return block.grads.slice(0, own.at, own.count);
}

double rate_of(const WeightBlock& block, const UpdateArgs& args) {
  return block.kind.role == Role::words ? args.ends_rate : args.rate;
}

class Adam final : public Optimizer {
 public:
  Adam(Weights& weights, const AdamConfig& config)
      : weights_(weights), config_(config), m_(kept_zeros(weights)), v_(kept_zeros(weights)) {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    AdamArgs how{.beta1 = float(config_.beta1),
                 .beta2 = float(config_.beta2),
                 .epsilon = float(config_.epsilon),
                 .correction1 = float(1 - std::pow(config_.beta1, double(updates_))),
                 .correction2 = float(1 - std::pow(config_.beta2, double(updates_))),
                 .grad_scale = float(args.grad_scale),
                 .decoupled = config_.decoupled};
    for (std::size_t i = 0; i < m_.size(); ++i) {
      const WeightBlock& block = weights_.blocks()[i];
      how.rate = float(rate_of(block, args));
      how.decay = block.kind.decays ? float(args.decay) : 0;
      for (const OwnedPart& own : block.owned)
        ops::adam_into({block.master_of(own), kept_of(m_[i], own), kept_of(v_[i], own), copy_of(block, own)},
                       grads_of(block, own), how);
    }
    weights_.gather();
  }
  void each_state(const VisitHeld& visit) const override {
    weights_.each_kept(m_, ".m", visit);
    weights_.each_kept(v_, ".v", visit);
  }

 private:
  Weights& weights_;
  AdamConfig config_;
  std::vector<Tensor> m_, v_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(Weights& weights, double momentum)
      : weights_(weights), momentum_(momentum), velocity_(kept_zeros(weights)) {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    for (std::size_t i = 0; i < velocity_.size(); ++i) {
      const WeightBlock& block = weights_.blocks()[i];
      const SgdArgs how{.rate = float(rate_of(block, args)),
                        .momentum = float(momentum_),
                        .decay = block.kind.decays ? float(args.decay) : 0,
                        .grad_scale = float(args.grad_scale)};
      for (const OwnedPart& own : block.owned)
        ops::sgd_into({block.master_of(own), kept_of(velocity_[i], own), copy_of(block, own)},
                      grads_of(block, own), how);
    }
    weights_.gather();
  }
  void each_state(const VisitHeld& visit) const override {
    weights_.each_kept(velocity_, ".momentum", visit);
  }

 private:
  Weights& weights_;
  double momentum_;
  std::vector<Tensor> velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(Weights& weights, const AdamConfig& config) {
  return std::make_unique<Adam>(weights, config);
}

std::unique_ptr<Optimizer> make_sgd(Weights& weights, double momentum) {
  return std::make_unique<Sgd>(weights, momentum);
}

}  // namespace weft
