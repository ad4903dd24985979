// First the copies of one rank are added, then those of all ranks that hold one.
#include "weft/optim/tied.h"

#include <algorithm>
#include <map>
#include <string>

#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// What this rank updates of a weight that fills a bucket.
Tensor own_gradient(const WeightBlock& block, int slot) {
  const auto bucket = std::ranges::find(block.buckets, slot, &WeightBucket::first_slot);
  if (!block.readers.cut()) return block.grads.slice(0, bucket->at, bucket->elements);
  return block.grad_of(block.owned[std::size_t(bucket - block.buckets.begin())]);
}

}  // namespace

TiedWeights::TiedWeights(Weights& weights) {
  std::map<std::string, Copies> by_name;
  for (const WeightBlock& block : weights.blocks())
    for (std::size_t i = 0; i < block.slots.size(); ++i)
      if (const Parameter& parameter = *block.slots[i].parameter; parameter.tied)
        by_name[parameter.name].gradients.push_back(own_gradient(block, int(i)));
  for (auto& [name, copies] : by_name) {
    copies.holders = weights.ties().holders(name);
    here_.push_back(std::move(copies));
  }
}

void TiedWeights::add_gradients() const {
  for (const Copies& copies : here_) {
    const Tensor& first = copies.gradients.front();
    for (std::size_t i = 1; i < copies.gradients.size(); ++i)
      ops::add_into(first, first, copies.gradients[i]);
    if (copies.holders) copies.holders->all_reduce(first, Reduce::sum).wait();
    for (std::size_t i = 1; i < copies.gradients.size(); ++i) ops::copy_into(copies.gradients[i], first);
  }
}

}  // namespace weft
