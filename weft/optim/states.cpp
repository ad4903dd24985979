#include "weft/optim/states.h"

#include "weft/ops/elementwise.h"

namespace weft {

State::State(const Weights& weights, std::string suffix, Dtype dtype)
    : suffix_(std::move(suffix)), shelf_(weights.shelf()) {
  std::vector<Tensor> kept;
  for (const WeightBlock& block : weights.blocks()) {
    on_shelf_.push_back(shelf_ != nullptr && block.kind.role != Role::kept);
    blocks_.push_back(on_shelf_.back() ? empty(shelf_->file(), {block.kept}, dtype, Use::optimizer)
                                       : ops::zeros(weights.device(), {block.kept}, dtype, Use::optimizer));
    kept.push_back(on_shelf_.back() ? blocks_.back() : Tensor());
  }
  if (shelf_ != nullptr) number_ = shelf_->keep(kept);
}

}  // namespace weft
