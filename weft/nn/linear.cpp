// The weight gradient waits: nothing downstream needs it, and paying it covers the reduction of dx that is
// under way.
#include "weft/nn/linear.h"

#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"

namespace weft {
namespace {

/// [t, h] as [s, b, h] of the same batch as x.
Tensor as_sequence(const Tensor& rows, const Tensor& like) {
  return rows.view({like.dim(0), like.dim(1), rows.dim(1)});
}

}  // namespace

Tensor Product::forward(const Tensor& x) const {
  const Tensor bias = bias_ && added_ == BiasAdded::by_product ? bias_->value : Tensor();
  return ops::matmul(x, weight_.value, {.b = Read::transposed, .bias = bias});
}

Tensor Product::input_grad(const Tensor& dy) const { return ops::matmul(dy, weight_.value); }

// y = x W^T + b  =>  dx = dy W,  dW += dy^T x,  db += sum over t of dy
void Product::owe_weight_grads(Debts& debts, const Tensor& dy, const Tensor& x) {
  if (weight_.grad.wanted())
    debts.owe([sink = &weight_.grad, dy, x] {
      ops::matmul_into(sink->sum(), dy, x, {.a = Read::transposed, .accumulate = true});
      sink->added();
    });
  if (bias_ && bias_->grad.wanted())
    debts.owe([sink = &bias_->grad, dy] {
      ops::sum_rows_into(sink->sum(), dy);
      sink->added();
    });
}

Tensor Product::bias_for_reader() const {
  return bias_ && added_ == BiasAdded::by_reader ? bias_->value : Tensor();
}

void Product::each_parameter(const VisitParameter& visit) {
  visit(weight_);
  if (bias_) visit(*bias_);
}

Tensor ColumnLinear::forward(const Tensor& x) const {
  const Tensor full = enter(tp_, x).wait();
  return as_sequence(product_.forward(full.rows()), full);
}

Tensor ColumnLinear::backward(Pass& pass, const Tensor& dy, const Tensor& x) {
  Arriving full = enter(tp_, x);
  Arriving dx = leave(tp_, as_sequence(product_.input_grad(dy.rows()), dy));
  product_.owe_weight_grads(pass.weight_grads(), dy.rows(), full.wait().rows());
  return dx.wait();
}

Tensor RowLinear::forward(const Tensor& x) const {
  return leave(tp_, as_sequence(product_.forward(x.rows()), x)).wait();
}

Tensor RowLinear::backward(Pass& pass, const Tensor& dy, const Tensor& x) {
  const Tensor full = enter(tp_, dy).wait();
  const Tensor dx = as_sequence(product_.input_grad(full.rows()), full);
  product_.owe_weight_grads(pass.weight_grads(), full.rows(), x.rows());
  return dx;
}

}  // namespace weft
