// From gradients to new weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "weft/optim/rate.h"
#include "weft/optim/weights.h"

namespace weft {

/// What differs from step to step. Rates are the schedule's at the start of the step.
struct UpdateArgs {
  double rate = 0, ends_rate = 0;    // of embedding and output where they have one of their own
  double width_rate = 0, width = 1;  // of weights whose pace follows the model's width, and that width
  double decay = 0;
  double grad_scale = 1;            // clipping, loss scale and whatever else, in one factor
  std::optional<Betas> betas = {};  // in place of the configuration's, where follows_betas() says so
};

/// An update rule with its states. It knows what a rank keeps and updates, and not how ranks share that out;
/// what it needs of whole tensors it asks the mesh for. Gradients are its own from update() on: it may write
/// there.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Collective over the mesh.
  virtual void update(const UpdateArgs& args) = 0;
  /// Whether the next update reads the sums of gradients over data-parallel ranks; else it reads what this
  /// rank's own samples gave, and speaks with the others itself. The same on all ranks.
  virtual bool wants_sums() const { return true; }
  /// States by parameter, under names like "layers.0.mlp.up.weight.m", and which boxes of them are here.
  virtual void each_state(const VisitHeld& visit) const = 0;
  /// Updates that were applied: what Adam's corrections count.
  std::int64_t updates() const { return updates_; }
  /// Before states are loaded: which ones there are may follow from it.
  virtual void set_updates(std::int64_t updates) { updates_ = updates; }
  /// Masters and states were loaded.
  virtual void loaded() {}
  /// Weights that all data-parallel ranks hold alike, one tensor a block like their masters, while what they
  /// train differs: checkpoints hold these. None: masters are the same on all of them.
  virtual std::span<const Tensor> agreed() const { return {}; }

 protected:
  std::int64_t updates_ = 0;
};

}  // namespace weft
