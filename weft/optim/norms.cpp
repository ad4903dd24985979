// Exact sums are added over ranks as digits, so ZeRO's and the buckets' borders cannot show.
#include "weft/optim/norms.h"

#include <algorithm>
#include <cmath>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {

double global_norm(const Weights& weights, Look look, std::span<Communicator* const> circles) {
  const Tensor digits = ops::exact_zero(weights.device());
  for (const WeightBlock& block : weights.blocks())
    if (block.kind.counted) ops::sum_squares_into(digits, look == Look::grads ? block.grads : block.master);
  for (Communicator* circle : circles) circle->all_reduce(digits, Reduce::sum).wait();
  return std::sqrt(ops::exact_number(digits));
}

std::int64_t global_zeros(const Weights& weights, std::span<Communicator* const> circles) {
  double zeros = 0;
  for (const WeightBlock& block : weights.blocks()) {
    if (!block.kind.counted) continue;
    for (const WeightSlot& slot : block.slots)
      zeros += number(ops::count_zeros(Weights::part(block.grads, slot)));
  }
  const Tensor total = ops::zeros(weights.device(), {1}, Dtype::f64);
  ops::fill(total, zeros);
  for (Communicator* circle : circles) circle->all_reduce(total, Reduce::sum).wait();
  return std::int64_t(number(total));
}

double clip_factor(double norm, double limit) { return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1; }

}  // namespace weft
