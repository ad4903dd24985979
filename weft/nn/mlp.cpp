// The bias of up is added inside the activation, so that memory is walked once; or both of them inside the
// product.
#include "weft/nn/mlp.h"

#include "weft/ops/activation.h"

namespace weft {

bool Mlp::in_one_walk(const Tensor& x) const {
  return !options_.gated && up_.can_activate() && down_.can_go_back_through() &&
         ops::activates_products(x, options_.activation);
}

Mlp::Saved Mlp::widen(const Tensor& x) const {
  if (in_one_walk(x)) {
    auto [before, after] = up_.forward_activated(x, options_.activation);
    return {std::move(before), std::move(after)};
  }
  const Tensor before = up_.forward(x);
  const Tensor bias = up_.bias_for_reader();
  return {before, options_.gated ? ops::gated(before, bias, options_.activation)
                                 : ops::activation(before, bias, options_.activation)};
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
    return up_.backward(pass, down_.backward(pass, dy, saved.after, {saved.before, options_.activation}), x);
  const Tensor dafter = down_.backward(pass, dy, saved.after);
  const Tensor bias = up_.bias_for_reader();
  if (options_.gated)
    return up_.backward(pass, ops::gated_backward(dafter, saved.before, bias, options_.activation), x);
  ops::activation_backward_into(dafter, dafter, saved.before, bias, options_.activation);
  return up_.backward(pass, dafter, x);
}

void Mlp::each_parameter(const VisitParameter& visit) {
  up_.each_parameter(visit);
  down_.each_parameter(visit);
}

}  // namespace weft
