#include "weft/nn/parallel_inner.h"

#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"

namespace weft {

Tensor ParallelInner::forward(Pass& pass, const Tensor& x, const Flow& beside) {
  const Tensor whole = options_.enters_once ? enter(options_.tp, x).wait() : x;
  Saved saved;
  Tensor sum;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const Branch& here = branches_[i];
    Norm::Out normed = here.norm ? here.norm->forward(x) : Norm::Out{whole, {}};
    const Tensor y = here.inner->forward(pass, normed.y, beside);
    if (!options_.recompute_norms) saved.normed[i] = std::move(normed.y);
    saved.stats[i] = std::move(normed.stats);
    if (sum)
      ops::add_into(sum, sum, y);
    else
      sum = y;
  }
  if (own_norms()) pass.save(std::move(saved));
  return options_.leaves_once ? leave(options_.tp, sum).wait() : sum;
}

Tensor ParallelInner::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  Arriving whole = options_.leaves_once ? enter(options_.tp, dy) : Arriving{dy, {}};
  return own_norms() ? through_norms(pass, whole.wait(), x, dbeside)
                     : through_one_norm(pass, whole.wait(), x, dbeside);
}

// The gradient of the block's sum, which is x's as well, goes into the first of the two passes that norms
// make anyway.
Tensor ParallelInner::through_norms(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  const Saved saved = pass.take<Saved>();
  Tensor dx = dbeside.hidden;
  for (std::size_t i = branches_.size(); i-- > 0;) {
    Branch& here = branches_[i];
    const Tensor normed = saved.normed[i] ? saved.normed[i] : here.norm->again(x);
    const Tensor d = here.inner->backward(pass, dy, normed, dbeside);
    dx = here.norm->backward(d, dx, x, saved.stats[i]);
  }
  return dx;
}

// Weight gradients of the branch that goes back last are paid while the sum of both travels.
Tensor ParallelInner::through_one_norm(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  const Tensor whole = options_.enters_once ? enter(options_.tp, x).wait() : x;
  Debts& debts = pass.weight_grads();
  const bool put_off = options_.enters_once && options_.tp.size() > 1 && debts.at_once();
  const Tensor dx = branches_[1].inner->backward(pass, dy, whole, dbeside);
  if (put_off) debts.pay_at_once(false);
  {
    const Tensor d = branches_[0].inner->backward(pass, dy, whole, dbeside);
    ops::add_into(dx, dx, d);
  }
  Arriving gone = options_.enters_once ? leave(options_.tp, dx) : Arriving{dx, {}};
  if (put_off) {
    debts.pay();
    debts.pay_at_once(true);
  }
  return gone.wait();
}

Tensor ParallelInner::bias_for_reader() const {
  const Tensor first = branches_[0].inner->bias_for_reader(), second = branches_[1].inner->bias_for_reader();
  if (!first || !second) return first ? first : second;
  const Tensor sum = empty_like(first);
  ops::add_into(sum, first, second);
  return sum;
}

void ParallelInner::each_parameter(const VisitParameter& visit) {
  for (Branch& here : branches_) {
    if (here.norm) here.norm->each_parameter(visit);
    here.inner->each_parameter(visit);
  }
}

void ParallelInner::each_router(const VisitRouter& visit) {
  for (Branch& here : branches_) here.inner->each_router(visit);
}

}  // namespace weft
