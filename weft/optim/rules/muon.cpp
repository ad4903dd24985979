// Muon: matrices go along their momentum made orthogonal, vectors and words by Adam, or by Lion.
#include "weft/optim/rules/muon.h"

#include <cmath>

#include "weft/ops/adam.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/rules.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

class Muon final : public Optimizer {
 public:
  Muon(Weights& weights, const OptimizerConfig& config)
      : weights_(weights), config_(config), matrices_(weights, config.muon), first_(weights, "") {
    for (const WeightBlock& block : weights.blocks()) {
      const bool adams = !by_lion() && !std::ranges::all_of(block.slots, [](const WeightSlot& slot) {
        return is_muons(*slot.parameter);
      });
      second_.push_back(ops::zeros(weights.device(), {adams ? block.kept : 0}, Dtype::f32, Use::optimizer));
    }
  }

  void update(const UpdateArgs& args) override {
    ++updates_;
    each_run(weights_, args, [&](const UpdateRun& run) {
      each_part(run, [&](bool muons, const UpdateRun& part) {
        muons ? find_direction(part, args) : by_lion() ? lion(part, args) : adam(part, args);
      });
    });
    matrices_.orthogonalize();
    each_run(weights_, args, [&](const UpdateRun& run) {
      each_part(run, [&](bool muons, const UpdateRun& part) {
        if (muons) descend(part);
      });
    });
    weights_.gather();
  }

  void each_state(const VisitHeld& visit) const override {
    const auto some = [&](bool muons, Held held, const char* suffix) {
      if (is_muons(held.parameter) != muons) return;
      held.name += suffix;
      visit(held);
    };
    first_.each(weights_, [&](const Held& held) { some(true, held, ".momentum"); });
    first_.each(weights_, [&](const Held& held) { some(false, held, by_lion() ? ".momentum" : ".m"); });
    if (by_lion()) return;
    weights_.each_kept(second_, "", [&](const Held& held) { some(false, held, ".v"); });
  }

 private:
  bool by_lion() const { return config_.muon.others == MuonOthers::lion; }
  /// visit(whether it is Muon's, what of a run belongs to one parameter)
  template <class Visit>
  static void each_part(const UpdateRun& run, const Visit& visit) {
    each_slot(run.block, run.own, [&](std::size_t slot, std::int64_t from, std::int64_t count) {
      const OwnedPart own{run.own.at + from, run.own.kept + from, count};
      visit(is_muons(*run.block.slots[slot].parameter),
            UpdateRun{.number = run.number,
                      .block = run.block,
                      .own = own,
                      .master = run.master.slice(0, from, count),
                      .copy = run.copy ? run.copy.slice(0, from, count) : Tensor(),
                      .grads = run.grads.slice(0, from, count),
                      .rate = run.rate,
                      .decay = run.decay});
    });
  }

  // m += (1 - mu) (g - m); what is made orthogonal is m, or with Nesterov's look ahead g + mu (m - g).
  void find_direction(const UpdateRun& part, const UpdateArgs& args) const {
    const Tensor m = first_.of(part.number, part.own);
    const auto mu = float(config_.muon.momentum), rest = float(1 - config_.muon.momentum);
    ops::scale_in_place(part.grads, float(args.grad_scale));
    if (!config_.decoupled_decay && part.decay != 0)
      ops::add_scaled_into(part.grads, part.master, float(part.decay));
    ops::scale_in_place(m, mu);
    ops::add_scaled_into(m, part.grads, rest);
    if (!config_.muon.nesterov) return ops::copy_into(part.grads, m);
    ops::scale_in_place(part.grads, rest);
    ops::add_scaled_into(part.grads, m, mu);
  }

  void descend(const UpdateRun& part) const {
    const double decay = config_.decoupled_decay ? part.decay : 0;
    ops::descend_into(part.master, part.copy, part.grads,
                      {.rate = float(part.rate), .keep = float(1 - part.rate * decay)});
  }

  void adam(const UpdateRun& part, const UpdateArgs& args) const {
    const Tensor v = second_[part.number].slice(0, part.own.kept, part.own.count);
    ops::adam_into({part.master, first_.of(part.number, part.own), v, part.copy}, part.grads,
                   {.rate = float(part.rate),
                    .beta1 = float(config_.beta1),
                    .beta2 = float(config_.beta2),
                    .epsilon = float(config_.epsilon),
                    .decay = float(part.decay),
                    .correction1 = float(1 - std::pow(config_.beta1, double(updates_))),
                    .correction2 = float(1 - std::pow(config_.beta2, double(updates_))),
                    .grad_scale = float(args.grad_scale),
                    .decoupled = config_.decoupled_decay});
  }

  void lion(const UpdateRun& part, const UpdateArgs& args) const {
    ops::lion_into({part.master, first_.of(part.number, part.own), part.copy}, part.grads,
                   {.rate = float(part.rate),
                    .beta1 = float(config_.lion.beta1),
                    .beta2 = float(config_.lion.beta2),
                    .decay = float(part.decay),
                    .grad_scale = float(args.grad_scale)});
  }

  Weights& weights_;
  OptimizerConfig config_;
  MuonMatrices matrices_;
  State first_;                 // momentum of matrices and for Lion, first moments for Adam
  std::vector<Tensor> second_;  // second moments, of blocks that hold anything but matrices
};

}  // namespace

OptimizerRule muon_rule() {
  return {.kind = OptimizerKind::muon,
          .state_bytes = [](const OptimizerConfig&) { return 4.0; },  // words and vectors aside
          .make = [](Weights& weights, const OptimizerConfig& config) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Muon>(weights, config);
          }};
}

}  // namespace weft
