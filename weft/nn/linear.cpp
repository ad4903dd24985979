// The weight gradient waits: nothing downstream needs it, and paying it covers the reduction of dx that is
// under way.
#include "weft/nn/linear.h"

#include <algorithm>

#include "weft/base/number.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"

namespace weft {
namespace {

/// [t, h] as [s, b, h] of the same batch as x.
Tensor as_sequence(const Tensor& rows, const Tensor& like) {
  return rows.view({like.dim(0), like.dim(1), rows.dim(1)});
}

/// [boxes t, h] as their sum [t, h].
Tensor boxes_added(const Tensor& partials, std::int64_t t) {
  const Tensor sum = partials.slice(0, 0, t);
  for (std::int64_t at = t; at < partials.dim(0); at += t) ops::add_into(sum, sum, partials.slice(0, at, t));
  return sum;
}

}  // namespace

Tensor Product::forward(const Tensor& x) const {
  const Tensor bias = bias_ && added_ == BiasAdded::by_product ? bias_->value : Tensor();
  return ops::matmul(x, weight_.value, {.b = Read::transposed, .bias = bias});
}

Tensor Product::input_grad(const Tensor& dy) const { return ops::matmul(dy, weight_.value); }

Tensor Product::forward_in_slabs(const Tensor& x, int slabs) const {
  const Tensor y = empty(x.device(), {x.dim(0), weight_.shape[0]});
  ops::matmul_into(y, x, weight_.value, {.b = Read::transposed, .slabs = slabs});
  return y;
}

Tensor Product::input_grad_in_slabs(const Tensor& dy, int slabs) const {
  const auto boxes = std::max<std::int64_t>(1, std::int64_t(weight_.pieces.size()));
  const std::int64_t t = dy.dim(0), rows = exact(dy.dim(1), boxes);
  const Tensor dx = empty(dy.device(), {boxes * t, weight_.shape[1]});
  for (std::int64_t i = 0; i < boxes; ++i)
    ops::matmul_into(dx.slice(0, i * t, t), dy.slice(1, i * rows, rows),
                     weight_.value.slice(0, i * rows, rows), {.slabs = slabs});
  return dx;
}

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
  if (dy.device().exact()) {
    const Tensor partials = product_.input_grad_in_slabs(dy.rows(), slabs_here(tp_, dy.device()));
    Pending added = tp_.circle.all_reduce(partials, Reduce::sum);
    product_.owe_weight_grads(pass.weight_grads(), dy.rows(), full.wait().rows());
    added.wait();
    return as_sequence(ops::cast(boxes_added(partials, dy.dim(0) * dy.dim(1)), dy.dtype()), dy);
  }
  Arriving dx = leave(tp_, as_sequence(product_.input_grad(dy.rows()), dy));
  product_.owe_weight_grads(pass.weight_grads(), dy.rows(), full.wait().rows());
  return dx.wait();
}

Tensor RowLinear::forward(const Tensor& x) const {
  if (x.device().exact()) {
    const Tensor partial = product_.forward_in_slabs(x.rows(), slabs_here(tp_, x.device()));
    tp_.circle.all_reduce(partial, Reduce::sum).wait();
    return as_sequence(ops::cast(partial, x.dtype()), x);
  }
  return leave(tp_, as_sequence(product_.forward(x.rows()), x)).wait();
}

Tensor RowLinear::backward(Pass& pass, const Tensor& dy, const Tensor& x) {
  const Tensor full = enter(tp_, dy).wait();
  const Tensor dx = as_sequence(product_.input_grad(full.rows()), full);
  product_.owe_weight_grads(pass.weight_grads(), full.rows(), x.rows());
  return dx;
}

}  // namespace weft
