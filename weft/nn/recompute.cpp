// Random numbers are addressed, so the second forward makes the same bits without any state to restore.
#include "weft/nn/recompute.h"

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/named.h"

namespace weft {

RecomputeLayers::Saved RecomputeLayers::kept(const Flow& x) const {
  if (!cut_) return {x, {}};
  const Tensor whole = ops::contiguous(x.hidden);
  const std::int64_t part = exact(whole.elements(), std::int64_t{cut_->size()});
  Saved saved{x, whole.shape()};
  saved.x.hidden = empty(whole.device(), {part}, whole.dtype());
  ops::copy_into(saved.x.hidden, whole.view({whole.elements()}).slice(0, cut_->rank() * part, part));
  return saved;
}

Flow RecomputeLayers::input_of(const Saved& saved) const {
  if (!cut_) return saved.x;
  const Tensor& part = saved.x.hidden;
  Flow x = saved.x;
  x.hidden = empty(part.device(), saved.whole, part.dtype());
  cut_->circle.all_gather(x.hidden.view({x.hidden.elements()}), part).wait();
  return x;
}

Flow RecomputeLayers::forward(Pass& pass, const Flow& x) {
  if (pass.training() && !pass.forgetful()) pass.save(kept(x));
  const bool outer = pass.forgetful();
  pass.forget(true);
  Flow y = inner_.forward(pass, x);
  pass.forget(outer);
  return y;
}

void RecomputeLayers::go_again(Pass& pass, const Flow& x) {
  const Named named(x.hidden.device(), "recompute");
  again_.open_again(pass);
  (void)inner_.forward(again_, x);
  again_.forget_losses();
}

Flow RecomputeLayers::backward(Pass& pass, const Flow& dy) {
  go_again(pass, input_of(pass.take<Saved>()));
  return inner_.backward(again_, dy);
}

Tensor RecomputeInner::forward(Pass& pass, const Tensor& x, const Flow& beside) {
  const bool outer = pass.forgetful();
  pass.forget(true);
  const Tensor y = inner_->forward(pass, x, beside);
  pass.forget(outer);
  return y;
}

void RecomputeInner::go_again(Pass& pass, const Tensor& x) {
  const Named named(x.device(), "recompute");
  again_.open_again(pass);
  (void)inner_->forward(again_, x, {});
  again_.forget_losses();
}

Tensor RecomputeInner::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  go_again(pass, x);
  return inner_->backward(again_, dy, x, dbeside);
}

}  // namespace weft
