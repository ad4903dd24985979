// Random numbers are addressed, so the second forward makes the same bits without any state to restore.
#include "weft/nn/recompute.h"

#include "weft/tensor/named.h"

namespace weft {

Flow RecomputeLayers::forward(Pass& pass, const Flow& x) {
  pass.save(Saved{x});
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
  go_again(pass, pass.take<Saved>().x);
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
