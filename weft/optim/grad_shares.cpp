// Reduce-scatter, and what was summed over ranks joins what other microbatches left there.
#include "weft/optim/grad_shares.h"

#include <algorithm>
#include <utility>

#include "weft/ops/elementwise.h"

namespace weft {

GradShares::GradShares(const Weights& weights)
    : wire_(weights.data().wire),
      code_{.bits = 4, .block = weights.data().gradient_block},
      under_way_(weights.blocks().size()) {
  for (const WeightBlock& block : weights.blocks())
    ones_.resize(std::max(ones_.size(), std::size_t(block.readers.ranks())), 1);
}

void GradShares::send(const WeightBlock& block, std::size_t bucket, Tensor whole, Arrive how) {
  Trip& trip = under_way_[next_];
  next_ = (next_ + 1) % under_way_.size();
  end(trip);
  trip.share = block.grad_of(block.owned[bucket]);
  trip.how = how;
  if (code_.block > 0 && block.holds_matrices(block.buckets[bucket]))
    return trip.terms.set_out(block.readers, whole, code_, ones_);
  if (wire_ != whole.dtype()) {
    const Tensor rounded = empty(whole.device(), whole.shape(), wire_, Use::communication);
    ops::copy_into(rounded, whole);
    whole = rounded;
  }
  if (how == Arrive::on_top || wire_ != trip.share.dtype())
    trip.arriving = empty(whole.device(), trip.share.shape(), wire_, Use::communication);
  trip.pending = block.readers.circle->reduce_scatter(trip.arriving ? trip.arriving : trip.share, whole);
}

void GradShares::end(Trip& trip) {
  trip.pending.wait();
  const Tensor arrived =
      trip.terms.under_way() ? trip.terms.arrive() : std::exchange(trip.arriving, Tensor());
  if (!arrived) return;
  if (trip.how == Arrive::on_top)
    ops::add_into(trip.share, trip.share, arrived);
  else
    ops::copy_into(trip.share, arrived);
}

void GradShares::finish() {
  for (std::size_t i = 0; i < under_way_.size(); ++i) end(under_way_[(next_ + i) % under_way_.size()]);
}

}  // namespace weft
