// States start at zero.
#include "weft/optim/states.h"

#include "weft/ops/elementwise.h"

namespace weft {

State::State(const Weights& weights, std::string suffix, Dtype dtype) : suffix_(std::move(suffix)) {
  for (const WeightBlock& block : weights.blocks())
    blocks_.push_back(ops::zeros(weights.device(), {block.kept}, dtype, Use::optimizer));
}

}  // namespace weft
