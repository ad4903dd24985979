// Operations that weft has only in the form that writes where it is told: here they make their result.
#pragma once

#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"

namespace weft::testing {

/// Of a's type.
inline Tensor add(const Tensor& a, const Tensor& b) {
  const Tensor out = empty_like(a);
  ops::add_into(out, a, b);
  return out;
}

/// Of residual's type.
inline Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual,
                               const DropoutArgs& how) {
  const Tensor out = empty_like(residual);
  ops::bias_dropout_add_into(out, x, bias, residual, how);
  return out;
}

/// sum is of residual's type, y of gain's.
inline SumNormOut sum_norm(const SumNormIn& in, const NormWeights& weights, const NormArgs& how) {
  Dims leading;
  for (int i = 0; i + 1 < in.x.rank(); ++i) leading.push_back(in.x.dim(i));
  Device& device = in.x.device();
  const SumNormOut out{
      empty_like(in.residual),
      empty(device, in.x.shape(), weights.gain.dtype()),
      {how.kind == NormKind::rms ? Tensor() : empty(device, Shape(leading)), empty(device, Shape(leading))}};
  ops::sum_norm_into(out, in, weights, how);
  return out;
}

/// dx, of x's type; dweights are added to.
inline Tensor norm_backward(const Tensor& dy, const Tensor& residual, const NormSaved& saved,
                            const NormWeights& dweights, const NormArgs& how) {
  const Tensor dx = empty_like(saved.x);
  ops::norm_backward_into({dx, dweights.gain, dweights.bias}, dy, residual, saved, how);
  return dx;
}

/// dq, dk and dv, of their tensors' types.
inline AttentionGrads attention_backward(const Tensor& dout, const AttentionOut& out, const Attended& in,
                                         const AttentionArgs& how) {
  AttentionGrads grads{empty_like(in.q), empty_like(in.k), empty_like(in.v)};
  ops::attention_backward_into(grads, dout, out, in, how);
  return grads;
}

}  // namespace weft::testing
