// Sums in the order of the uses, wherever they stand. Two terms have one order only; of three, the first two
// are added over ranks before the third.
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
        by_name[parameter.name].here.push_back({own_gradient(block, int(i)), parameter.use});
  for (auto& [name, copies] : by_name) {
    copies.holders = weights.ties().holders(name);
    copies.uses = weights.ties().uses(name);
    std::ranges::stable_sort(copies.here, {}, &Copy::use);
    here_.push_back(std::move(copies));
  }
}

// A rank adds what it has of the next uses to the sum of those before, or nothing to zeros: with one term
// that is not zero, or two, no order of ranks shows. The first copy is the sum's place, where it may be.
void TiedWeights::add_over_ranks(const Copies& copies) {
  const Tensor& mine = copies.here.front().gradient;
  Tensor sum;
  for (int from = 0; from < copies.uses; from = std::max(from + 1, 2)) {
    const int end = std::max(from + 1, 2);
    bool began = false;
    for (const Copy& copy : copies.here) {
      if (copy.use < from || copy.use >= end) continue;
      if (!sum)
        sum = copy.gradient;
      else
        ops::add_into(sum, sum, copy.gradient);
      began = true;
    }
    if (!began) {
      if (!sum) sum = empty_like(mine);
      ops::fill(sum, 0);
    }
    copies.holders->all_reduce(sum, Reduce::sum).wait();
  }
  for (const Copy& copy : copies.here)
    if (copy.gradient.storage() != sum.storage() || copy.gradient.offset() != sum.offset())
      ops::copy_into(copy.gradient, sum);
}

void TiedWeights::add_gradients() const {
  for (const Copies& copies : here_) {
    if (copies.holders) {
      add_over_ranks(copies);
      continue;
    }
    const Tensor& first = copies.here.front().gradient;
    for (std::size_t i = 1; i < copies.here.size(); ++i) ops::add_into(first, first, copies.here[i].gradient);
    for (std::size_t i = 1; i < copies.here.size(); ++i) ops::copy_into(copies.here[i].gradient, first);
  }
}

}  // namespace weft
