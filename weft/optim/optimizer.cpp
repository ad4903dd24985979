// Adam and SGD over flat blocks: one pass reads the gradient and writes master, moments and the copy that
// layers read.
#include "weft/optim/optimizer.h"

#include <cmath>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

std::vector<Tensor> zeros_like_blocks(const Weights& weights) {
  std::vector<Tensor> out;
  for (const WeightBlock& block : weights.blocks())
    out.push_back(ops::zeros(weights.device(), {block.elements}, Dtype::f32, Use::optimizer));
  return out;
}

/// The copy that layers read; empty where they read the master itself.
Tensor copy_of(const WeightBlock& block) {
  return block.values.dtype() == Dtype::f32 ? Tensor() : block.values;
}

double rate_of(const WeightBlock& block, const UpdateArgs& args) {
  return block.kind.at_the_ends ? args.ends_rate : args.rate;
}

void visit_parts(const Weights& weights, const std::vector<Tensor>& flats, const char* suffix,
                 const VisitState& visit) {
  for (std::size_t i = 0; i < flats.size(); ++i)
    for (const WeightSlot& slot : weights.blocks()[i].slots)
      visit(slot.parameter->name + suffix, *slot.parameter, Weights::part(flats[i], slot));
}

class Adam final : public Optimizer {
 public:
  Adam(Weights& weights, const AdamConfig& config)
      : weights_(weights), config_(config), m_(zeros_like_blocks(weights)), v_(zeros_like_blocks(weights)) {}

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
      ops::adam_into({block.master, m_[i], v_[i], copy_of(block)}, block.grads, how);
    }
  }
  void each_state(const VisitState& visit) const override {
    visit_parts(weights_, m_, ".m", visit);
    visit_parts(weights_, v_, ".v", visit);
  }

 private:
  Weights& weights_;
  AdamConfig config_;
  std::vector<Tensor> m_, v_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(Weights& weights, double momentum)
      : weights_(weights), momentum_(momentum), velocity_(zeros_like_blocks(weights)) {}

  void update(const UpdateArgs& args) override {
    ++updates_;
    for (std::size_t i = 0; i < velocity_.size(); ++i) {
      const WeightBlock& block = weights_.blocks()[i];
      ops::sgd_into({block.master, velocity_[i], copy_of(block)}, block.grads,
                    {.rate = float(rate_of(block, args)),
                     .momentum = float(momentum_),
                     .decay = block.kind.decays ? float(args.decay) : 0,
                     .grad_scale = float(args.grad_scale)});
    }
  }
  void each_state(const VisitState& visit) const override {
    visit_parts(weights_, velocity_, ".momentum", visit);
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
