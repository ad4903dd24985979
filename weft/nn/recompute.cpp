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

}  // namespace weft
