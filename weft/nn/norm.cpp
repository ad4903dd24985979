// Norms keep their input and two numbers a row; everything else is cheaper to compute again.
#include "weft/nn/norm.h"

#include "weft/ops/norm.h"

namespace weft {

Norm::Out Norm::forward(const Tensor& x) const {
  auto [y, stats] = ops::norm(x, weights(), args_);
  return {y, stats};
}

NormStats Norm::make_stats(const Tensor& x) const {
  Shape rows = x.shape();
  Dims leading;
  for (int i = 0; i + 1 < rows.rank(); ++i) leading.push_back(rows[i]);
  const Shape shape(leading);
  return {args_.kind == NormKind::layer ? empty(x.device(), shape) : Tensor(), empty(x.device(), shape)};
}

NormStats Norm::forward_into(const Tensor& y, const Tensor& x) const {
  const NormStats stats = make_stats(x);
  ops::norm_into({y, stats}, x, weights(), args_);
  return stats;
}

SumNormOut Norm::forward_sum(const SumNormIn& in) const {
  const SumNormOut out{in.x, empty_like(in.x), make_stats(in.x)};
  ops::sum_norm_into(out, in, weights(), args_);
  return out;
}

Tensor Norm::backward(const Tensor& dy, const Tensor& residual, const Tensor& x, const NormStats& stats) {
  const NormGrads grads{dy, gain_.grad.sum(), bias_ ? bias_->grad.sum() : Tensor()};
  ops::norm_backward_into(grads, dy, residual, {x, stats, gain_.value}, args_);
  gain_.grad.added();
  if (bias_) bias_->grad.added();
  return dy;
}

void Norm::each_parameter(const VisitParameter& visit) {
  visit(gain_);
  if (bias_) visit(*bias_);
}

}  // namespace weft
