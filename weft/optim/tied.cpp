// First the copies of one rank are added, then those of all ranks that hold one.
#include "weft/optim/tied.h"

#include <map>
#include <string>

#include "weft/ops/elementwise.h"

namespace weft {

TiedWeights::TiedWeights(Weights& weights, Communicator& along_pp) {
  std::map<std::string, Copies> by_name;
  for (const WeightBlock& block : weights.blocks())
    for (const WeightSlot& slot : block.slots)
      if (slot.parameter->tied)
        by_name[slot.parameter->name].gradients.push_back(Weights::part(block.grads, slot));
  for (auto& [name, copies] : by_name) here_.push_back(std::move(copies));
  auto circle = along_pp.split(here_.empty() ? 0 : 1, along_pp.rank());
  if (!here_.empty() && circle->size() > 1) others_ = std::move(circle);
}

void TiedWeights::add_gradients() const {
  for (const Copies& copies : here_) {
    const Tensor& first = copies.gradients.front();
    for (std::size_t i = 1; i < copies.gradients.size(); ++i)
      ops::add_into(first, first, copies.gradients[i]);
    if (others_) others_->all_reduce(first, Reduce::sum).wait();
    for (std::size_t i = 1; i < copies.gradients.size(); ++i) ops::copy_into(copies.gradients[i], first);
  }
}

}  // namespace weft
