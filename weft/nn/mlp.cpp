// The bias of up is added inside the activation, so that memory is walked once; or both of them inside the
// product.
#include "weft/nn/mlp.h"

#include "weft/ops/activation.h"

namespace weft {

bool Mlp::in_one_walk(const Tensor& x) const {
  return !options_.gated && up_.can_activate() && down_.can_go_back_through() &&
         ops::activates_products(x, options_.gate.f);
}

Mlp::Saved Mlp::widen(const Tensor& x) const {
  if (in_one_walk(x)) {
    auto [before, after] = up_.forward_activated(x, options_.gate.f);
    return {std::move(before), std::move(after)};
  }
  const Tensor before = up_.forward(x);
  const Tensor bias = up_.bias_for_reader();
  return {before, options_.gated ? ops::gated(before, bias, options_.gate)
                                 : ops::activation(before, bias, options_.gate.f)};
}

Tensor Mlp::forward(Pass& pass, const Tensor& x, const Flow&) {
  Saved saved = widen(x);
  Tensor y = down_.forward(saved.after);
  if (!options_.recompute) pass.save(std::move(saved));
  return y;
}

Tensor Mlp::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow&) {
  const Saved saved = options_.recompute ? widen(x) : pass.take<Saved>();
  if (in_one_walk(x))
    return up_.backward(pass, down_.backward(pass, dy, saved.after, {saved.before, options_.gate.f}), x);
  const Tensor dafter = down_.backward(pass, dy, saved.after);
  const Tensor bias = up_.bias_for_reader();
  if (options_.gated)
    return up_.backward(pass, ops::gated_backward(dafter, saved.before, bias, options_.gate), x);
  ops::activation_backward_into(dafter, dafter, saved.before, bias, options_.gate.f);
  return up_.backward(pass, dafter, x);
}

void Mlp::each_parameter(const VisitParameter& visit) {
  up_.each_parameter(visit);
  down_.each_parameter(visit);
}

}  // namespace weft
