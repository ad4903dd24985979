// Exact sums are added over ranks as digits, so ZeRO's and the buckets' borders cannot show.
#include "weft/optim/norms.h"

#include <algorithm>
#include <cmath>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

// Ranks that keep different parts of states look at different parts of gradients.
void add_over_ranks(const Tensor& sum, const Weights& weights, std::span<Communicator* const> circles) {
  for (Communicator* circle : circles) circle->all_reduce(sum, Reduce::sum).wait();
  if (weights.data().cut()) weights.data().circle->all_reduce(sum, Reduce::sum).wait();
}

/// Elements of parameters only: between them lies padding.
double zeros_of(const WeightBlock& block, const OwnedPart& own) {
  double zeros = 0;
  for (const WeightSlot& slot : block.slots) {
    const std::int64_t from = std::max(own.at, slot.at);
    const std::int64_t end = std::min(own.at + own.count, slot.at + slot.parameter->shape.elements());
    if (from < end) zeros += number(ops::count_zeros(block.grads.slice(0, from, end - from)));
  }
  return zeros;
}

}  // namespace

double global_norm(const Weights& weights, Look look, std::span<Communicator* const> circles) {
  const Tensor digits = ops::exact_zero(weights.device());
  for (const WeightBlock& block : weights.blocks())
    if (block.kind.counted)
      for (const OwnedPart& own : block.owned)
        ops::sum_squares_into(
            digits, look == Look::grads ? block.grads.slice(0, own.at, own.count) : block.master_of(own));
  add_over_ranks(digits, weights, circles);
  return std::sqrt(ops::exact_number(digits));
}

std::int64_t global_zeros(const Weights& weights, std::span<Communicator* const> circles) {
  double zeros = 0;
  for (const WeightBlock& block : weights.blocks())
    if (block.kind.counted)
      for (const OwnedPart& own : block.owned) zeros += zeros_of(block, own);
  const Tensor total = ops::zeros(weights.device(), {1}, Dtype::f64);
  ops::fill(total, zeros);
  add_over_ranks(total, weights, circles);
  return std::int64_t(number(total));
}

double clip_factor(double norm, double limit) { return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1; }

}  // namespace weft
