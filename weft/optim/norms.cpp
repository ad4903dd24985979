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

/// The runs of a part that lie in parameters, and that this rank counts: between parameters lies padding, and
/// of a key that neighbours share one counts.
template <class Visit>
void each_counted(const WeightBlock& block, const OwnedPart& own, const Visit& visit) {
  for (const WeightSlot& slot : block.slots)
    for (const Piece& piece : slot.parameter->pieces) {
      const std::int64_t first = slot.at + piece.at;
      const std::int64_t from = std::max(own.at, first);
      const std::int64_t end = std::min(own.at + own.count, first + piece.where.local.elements());
      if (from < end && piece.where.replica == 0)
        visit(OwnedPart{.at = from, .kept = own.kept + from - own.at, .count = end - from});
    }
}

}  // namespace

double global_norm(const Weights& weights, Look look, std::span<Communicator* const> circles) {
  const Tensor digits = ops::exact_zero(weights.device());
  for (const WeightBlock& block : weights.blocks()) {
    if (!block.kind.counted) continue;
    const auto add = [&](const OwnedPart& part) {
      ops::sum_squares_into(
          digits, look == Look::grads ? block.grads.slice(0, part.at, part.count) : block.master_of(part));
    };
    for (const OwnedPart& own : block.owned)
      if (block.kind.sharers > 1)
        each_counted(block, own, add);
      else
        add(own);
  }
  add_over_ranks(digits, weights, circles);
  return std::sqrt(ops::exact_number(digits));
}

std::int64_t global_zeros(const Weights& weights, std::span<Communicator* const> circles) {
  double zeros = 0;
  for (const WeightBlock& block : weights.blocks())
    for (const OwnedPart& own : block.owned)
      each_counted(block, own, [&](const OwnedPart& part) {
        zeros += number(ops::count_zeros(block.grads.slice(0, part.at, part.count)));
      });
  const Tensor total = ops::zeros(weights.device(), {1}, Dtype::f64);
  ops::fill(total, zeros);
  add_over_ranks(total, weights, circles);
  return std::int64_t(number(total));
}

double clip_factor(double norm, double limit) { return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1; }

}  // namespace weft
