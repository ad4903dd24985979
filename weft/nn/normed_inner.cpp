#include "weft/nn/normed_inner.h"

#include "weft/ops/elementwise.h"

namespace weft {

Tensor NormedInner::forward(Pass& pass, const Tensor& x, const Flow& beside) {
  const Tensor y = inner_->forward(pass, x, beside);
  const Tensor bias = inner_->bias_for_reader();
  if (bias) ops::add_bias_in_place(y, bias);
  const Norm::Out normed = norm_.forward(y);
  pass.save(Norm::Read{y, normed.stats});
  return normed.y;
}

// dy is still to be added to what the whole block was given.
Tensor NormedInner::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  const Tensor dinner = empty_like(dy);
  {
    const auto read = pass.take<Norm::Read>();
    norm_.backward_into({dinner, {}}, dy, {}, read);
  }
  return inner_->backward(pass, dinner, x, dbeside);
}

void NormedInner::each_parameter(const VisitParameter& visit) {
  inner_->each_parameter(visit);
  norm_.each_parameter(visit);
}

}  // namespace weft
