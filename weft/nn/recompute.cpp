// Random numbers are addressed, so the second forward makes the same bits without any state to restore.
#include "weft/nn/recompute.h"

namespace weft {

Flow RecomputeLayers::forward(Pass& pass, const Flow& x) {
  pass.save(Saved{x});
  const bool outer = pass.forgetful();
  pass.forget(true);
  Flow y = inner_.forward(pass, x);
  pass.forget(outer);
  return y;
}

Flow RecomputeLayers::backward(Pass& pass, const Flow& dy) {
  again_.open_again(pass);
  (void)inner_.forward(again_, pass.take<Saved>().x);
  again_.forget_losses();
  return inner_.backward(again_, dy);
}

Tensor RecomputeInner::forward(Pass& pass, const Tensor& x, const Flow& beside) {
  const bool outer = pass.forgetful();
  pass.forget(true);
  const Tensor y = inner_->forward(pass, x, beside);
  pass.forget(outer);
  return y;
}

Tensor RecomputeInner::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  again_.open_again(pass);
  (void)inner_->forward(again_, x, {});
  again_.forget_losses();
  return inner_->backward(again_, dy, x, dbeside);
}

}  // namespace weft
