// The weight gradient waits: nothing downstream needs it, and paying it covers the reduction of dx that is
// under way.
#include "weft/nn/linear.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/base/number.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// [t, h] as [s, b, h] of the same batch as x.
Tensor as_sequence(const Tensor& rows, const Tensor& like) {
  return rows.view({like.dim(0), like.dim(1), rows.dim(1)});
}

/// Some of every group along a dimension of a matrix, one group's after the other's; a copy where there are
/// several.
Tensor of_groups(const Tensor& x, int dim, std::int64_t groups, const Share& some) {
  if (groups == 1) return x.slice(dim, some.from, some.count);
  const Tensor parts =
      x.split(dim, {groups, exact(x.dim(dim), groups)}).slice(dim + 1, some.from, some.count);
  Shape shape = x.shape();
  shape[dim] = groups * some.count;
  return ops::contiguous(parts).view(shape);
}

}  // namespace

Tensor Product::forward(const Tensor& x) const {
  const Tensor bias = bias_ && added_ == BiasAdded::by_product ? bias_->value : Tensor();
  if (weight_.fp8.on()) {
    Tensor y = empty(x.device(), {x.dim(0), weight_.shape[0]}, x.dtype());
    fp8_product_into(weight_.fp8, y, x, weight_.value, bias);
    return y;
  }
  return ops::matmul(x, weight_.value, {.b = Read::transposed, .bias = bias});
}

ops::Activated Product::forward_activated(const Tensor& x, Activation f) const {
  const Tensor bias = bias_ ? bias_->value : Tensor();
  return ops::matmul_activated(x, weight_.value, {{.b = Read::transposed, .bias = bias}, f});
}

OutputGrad Product::output_grad(const Tensor& dy) const {
  if (!weight_grad_in_eight_bits() || !weight_.grad.wanted()) return {dy};
  return {dy, fp8_grad(weight_.fp8, dy, Fp8Back::both)};
}

Tensor Product::input_grad(const OutputGrad& dy, const BackThrough& through) const {
  const Tensor& rows = dy.rows;
  if (through.before) return ops::matmul_derived(rows, weight_.value, through.before, {{}, through.f});
  if (!weight_.fp8.on()) return ops::matmul(rows, weight_.value);
  Tensor dx = empty(rows.device(), {rows.dim(0), weight_.shape[1]}, rows.dtype());
  const bool given = bool(dy.rounded.of.codes);
  fp8_input_grad_into(weight_.fp8, dx, given ? dy.rounded : fp8_grad(weight_.fp8, rows, Fp8Back::input),
                      weight_.value);
  return dx;
}

Tensor Product::forward_in_slabs(const Tensor& x, int slabs) const {
  const Tensor y = empty(x.device(), {x.dim(0), weight_.shape[0]});
  ops::matmul_into(y, x, weight_.value, {.b = Read::transposed, .slabs = slabs});
  return y;
}

std::vector<Product::Box> Product::boxes() const {
  const std::int64_t rows = weight_.shape[0];
  if (keys_.groups > 0) {
    const std::int64_t queries = exact(rows, keys_.groups) - keys_.of_group;
    return {{keys_.groups, {0, queries}},
            {keys_.groups, {queries + keys_.counted.from, keys_.counted.count}}};
  }
  const auto count = std::max<std::int64_t>(1, std::int64_t(weight_.pieces.size()));
  std::vector<Box> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back({1, {i * (rows / count), exact(rows, count)}});
  return out;
}

Tensor Product::input_grad_in_slabs(const Tensor& dy, int slabs) const {
  const std::vector<Box> all = boxes();
  const std::int64_t t = dy.dim(0);
  const Tensor dx = empty(dy.device(), {std::ssize(all) * t, weight_.shape[1]});
  for (std::int64_t i = 0; i < std::ssize(all); ++i) {
    const auto& [groups, some] = all[std::size_t(i)];
    ops::matmul_into(dx.slice(0, i * t, t), of_groups(dy, 1, groups, some),
                     of_groups(weight_.value, 0, groups, some), {.slabs = slabs});
  }
  return dx;
}

// y = x W^T + b  =>  dx = dy W,  dW += dy^T x,  db += sum over t of dy
//
// Where tokens are cut a rank makes its share of the rows of dW and db over whole sequences.
void Product::owe_weight_grads(Debts& debts, OutputGrad grad, const Tensor& x) {
  const Tensor dy = grad.rows;
  const TokenCut cut = context_;
  const Share rows = cut.share(dy.dim(1));
  if (weight_.grad.wanted() && bias_ && bias_->grad.wanted() && !weight_.fp8.on())
    return debts.owe([weight = &weight_.grad, bias = &bias_->grad, cut, rows, dy, x] {
      ops::weight_gradient_into(
          {weight->place(rows.from, rows.count), bias->sum().slice(0, rows.from, rows.count)},
          cut.whole(dy).slice(1, rows.from, rows.count), cut.whole(x));
      weight->added();
      bias->added();
    });
  if (weight_.grad.wanted() && weight_grad_in_eight_bits())
    owe_in_eight_bits(debts, std::move(grad), x);
  else if (weight_.grad.wanted())
    debts.owe([sink = &weight_.grad, cut, rows, dy, x] {
      const GradPlace dw = sink->place(rows.from, rows.count);
      ops::matmul_into(dw.sum, cut.whole(dy).slice(1, rows.from, rows.count), cut.whole(x),
                       {.a = Read::transposed, .accumulate = dw.on_top});
      sink->added();
    });
  if (weight_.fp8.on() && !weight_.fp8.rules.weight_grads) fp8_meet_input(weight_.fp8, x);
  if (bias_ && bias_->grad.wanted())
    debts.owe([sink = &bias_->grad, cut, rows, dy] {
      ops::sum_rows_into(sink->sum().slice(0, rows.from, rows.count),
                         cut.whole(dy).slice(1, rows.from, rows.count));
      sink->added();
    });
}

// Never where tokens are cut for exact sums. Of what was rounded turned codes alone are kept.
void Product::owe_in_eight_bits(Debts& debts, OutputGrad dy, const Tensor& x) {
  if (dy.rounded.of.turned) dy.rows = {};
  dy.rounded.keep_turned();
  debts.owe([weight = &weight_, dy = std::move(dy), x] {
    const Fp8Rounded now = dy.rows ? fp8_grad(weight->fp8, dy.rows, Fp8Back::weight) : dy.rounded;
    fp8_weight_grad_into(weight->fp8, weight->grad.place(), now, x);
    weight->grad.added();
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

ops::Activated ColumnLinear::forward_activated(const Tensor& x, Activation f) const {
  const Tensor full = enter(tp_, x).wait();
  const ops::Activated out = product_.forward_activated(full.rows(), f);
  return {as_sequence(out.before, full), as_sequence(out.after, full)};
}

Tensor ColumnLinear::backward(Pass& pass, const Tensor& dy, const Tensor& x) {
  if (tp_.sums.in_slabs()) return backward_in_slabs(pass, dy, x);
  Arriving full = enter(tp_, x);
  OutputGrad grad = product_.output_grad(dy.rows());
  Arriving dx = leave(tp_, as_sequence(product_.input_grad(grad), dy));
  product_.owe_weight_grads(pass.weight_grads(), std::move(grad), full.wait().rows());
  return dx.wait();
}

// Parts of sums leave in f32 and are rounded once, boxes of the weight one after the other.
Tensor ColumnLinear::backward_in_slabs(Pass& pass, const Tensor& dy, const Tensor& x) {
  Arriving full = enter(tp_, x);
  const std::int64_t t = dy.dim(0) * dy.dim(1);
  const Tensor partials = product_.input_grad_in_slabs(dy.rows(), tp_.slabs());
  std::vector<Arriving> boxes;
  for (std::int64_t at = 0; at < partials.dim(0); at += t)
    boxes.push_back(leave(tp_, as_sequence(partials.slice(0, at, t), dy)));
  product_.owe_weight_grads(pass.weight_grads(), {dy.rows()}, full.wait().rows());
  const Tensor sum = boxes.front().wait();
  for (std::size_t i = 1; i < boxes.size(); ++i) ops::add_into(sum, sum, boxes[i].wait());
  return ops::cast(sum, dy.dtype());
}

Tensor RowLinear::forward(const Tensor& x) const {
  if (tp_.sums.in_slabs()) {
    const Tensor partial = product_.forward_in_slabs(x.rows(), tp_.slabs());
    return ops::cast(leave(tp_, as_sequence(partial, x)).wait(), x.dtype());
  }
  return leave(tp_, as_sequence(product_.forward(x.rows()), x)).wait();
}

Tensor RowLinear::backward(Pass& pass, const Tensor& dy, const Tensor& x, const BackThrough& through) {
  const Tensor full = enter(tp_, dy).wait();
  const BackThrough rows{through.before ? through.before.rows() : Tensor(), through.f};
  OutputGrad grad = product_.output_grad(full.rows());
  const Tensor dx = as_sequence(product_.input_grad(grad, rows), full);
  product_.owe_weight_grads(pass.weight_grads(), std::move(grad), x.rows());
  return dx;
}

}  // namespace weft
