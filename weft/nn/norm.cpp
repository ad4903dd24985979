// Norms keep their input and two numbers a row; everything else is cheaper to compute again.
#include "weft/nn/norm.h"

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
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

std::int64_t Norm::heads_apart(const Tensor& x) const { return exact(gain_.value.dim(0), x.dim(-1)); }

namespace {

/// The i-th head of [s, b, g, (r,) d]: [s, b, d]
Tensor head_of(const Tensor& heads, std::int64_t i) {
  if (!heads || heads.rank() == 4) return heads ? heads.at(2, i) : heads;
  return heads.at(2, i / heads.dim(3)).at(2, i % heads.dim(3));
}

/// Those of the i-th head, where stats have heads first.
NormStats stats_of(const NormStats& stats, std::int64_t i) {
  return {stats.mean ? stats.mean.at(0, i) : Tensor(), stats.rstd.at(0, i)};
}

}  // namespace

NormStats Norm::forward_apart(const Tensor& y, const Tensor& x) const {
  const std::int64_t heads = heads_apart(x), d = x.dim(-1);
  const Shape rows{heads, x.dim(0), x.dim(1)};
  const NormStats stats{args_.kind == NormKind::layer ? empty(x.device(), rows) : Tensor(),
                        empty(x.device(), rows)};
  for (std::int64_t i = 0; i < heads; ++i)
    ops::norm_into({head_of(y, i), stats_of(stats, i)}, head_of(x, i), {gain_.value.slice(0, i * d, d), {}},
                   args_);
  return stats;
}

NormStats Norm::forward_into(const Tensor& y, const Tensor& x) const {
  if (heads_apart(x) > 1) return forward_apart(y, x);
  const NormStats stats = make_stats(x);
  ops::norm_into({y, stats}, x, weights(), args_);
  return stats;
}

SumNormOut Norm::forward_sum(const SumNormIn& in, Dtype sum) const {
  const Tensor& x = in.x;
  const SumNormOut out{x.dtype() == sum ? x : empty(x.device(), x.shape(), sum), empty_like(x),
                       make_stats(x)};
  ops::sum_norm_into(out, in, weights(), args_);
  return out;
}

/// What backward reads, some rows of it.
struct Norm::PieceRows {
  Tensor dx, rounded, dy, residual, x;
  NormStats stats;
  PieceRows slice(int dim, std::int64_t from, std::int64_t count) const {
    const auto cut = [&](const Tensor& t) { return t ? t.slice(dim, from, count) : t; };
    return {cut(dx), cut(rounded), cut(dy), cut(residual), cut(x), {cut(stats.mean), cut(stats.rstd)}};
  }
  bool of_heads() const { return dy.rank() > 3; }
  /// Of key heads in so many parts each, the i-th part of all.
  PieceRows part(std::int64_t i, std::int64_t parts) const {
    if (!of_heads()) return *this;
    const PieceRows head = slice(2, i / parts, 1);
    if (parts == 1) return head;
    const std::int64_t count = exact(dy.dim(3), parts);
    return head.slice(3, i % parts * count, count);
  }
};

// A sum for every piece of the sequence that is held here, and for every part of a key head: units that no
// layout cuts.
void Norm::backward_in_pieces(const Learned& learned, const PieceRows& rows) const {
  const std::int64_t steps = rows.dy.dim(0), width = rows.dy.dim(-1);
  const std::int64_t parts = rows.of_heads() ? rows.dy.dim(2) * rows_.parts : 1;
  const std::int64_t ranks =
      rows_.context.ranks() * std::int64_t{rows_.sequence ? rows_.sequence->size() : 1};
  const std::int64_t pieces = exact(pieces_of(steps * ranks), ranks);
  const Tensor sums = ops::zeros(rows.dy.device(), {parts, 2, pieces, width});
  for (std::int64_t i = 0; i < parts; ++i) {
    const PieceRows some = rows.part(i, rows_.parts);
    const NormStats stats{some.stats.mean ? ops::contiguous(some.stats.mean) : Tensor(),
                          ops::contiguous(some.stats.rstd)};
    const Tensor here = sums.at(0, i);
    const NormGrads grads{some.dx, here.at(0, 0), bias_ ? here.at(0, 1) : Tensor(), some.rounded};
    ops::norm_backward_into(grads, some.dy, some.residual, {some.x, stats, learned.gain}, args_);
  }
  add_pieces(learned, ops::contiguous(sums.permute({2, 0, 1, 3})));
}

/// pieces [p, parts of heads, 2, h], of this rank
void Norm::add_pieces(const Learned& learned, const Tensor& pieces) const {
  Tensor all = pieces;
  if (rows_.sequence && rows_.sequence->size() > 1) {
    Dims dims = pieces.shape();
    dims[0] *= rows_.sequence->size();
    all = empty(pieces.device(), Shape(dims));
    rows_.sequence->all_gather(all, pieces).wait();
  }
  const Tensor sum = added_as_tree(added_as_tree(rows_.context.whole(all)));
  if (!rows_.counted) ops::fill(sum, 0);
  for (Communicator* others : {rows_.traded, rows_.heads})
    if (others) others->all_reduce(sum, Reduce::sum).wait();
  if (rows_.context.rank() > 0 || (rows_.traded && rows_.traded->rank() > 0))
    return;  // the gradients of context-parallel ranks are added
  ops::add_into(learned.dgain, learned.dgain, sum.at(0, 0));
  if (bias_) ops::add_into(learned.dbias, learned.dbias, sum.at(0, 1));
}

Norm::Slopes Norm::backward_and_rounded(const Tensor& dy, const Tensor& residual, const Read& read,
                                        bool wish) const {
  const Dtype type = read.x.dtype();
  Slopes to;
  if (dy.dtype() == type)
    to.dx = dy;
  else
    to = {residual && residual.dtype() == type ? residual : empty_like(read.x), wish ? dy : Tensor()};
  backward_into(to, dy, residual, read);
  return to;
}

void Norm::backward_of(const Learned& learned, const PieceRows& rows) const {
  if (rows_.sums.in_pieces()) return backward_in_pieces(learned, rows);
  const NormGrads grads{rows.dx, learned.dgain, learned.dbias, rows.rounded};
  ops::norm_backward_into(grads, rows.dy, rows.residual, {rows.x, rows.stats, learned.gain}, args_);
}

void Norm::backward_apart(const PieceRows& rows) const {
  const std::int64_t heads = heads_apart(rows.x), d = rows.x.dim(-1);
  const Learned all = learned();
  for (std::int64_t i = 0; i < heads; ++i) {
    const Tensor dgain = all.dgain ? all.dgain.slice(0, i * d, d) : Tensor();
    backward_of({all.gain.slice(0, i * d, d), dgain, {}},
                {head_of(rows.dx, i), head_of(rows.rounded, i), head_of(rows.dy, i),
                 head_of(rows.residual, i), head_of(rows.x, i), stats_of(rows.stats, i)});
  }
}

void Norm::backward_into(const Slopes& to, const Tensor& dy, const Tensor& residual, const Read& read) const {
  const PieceRows rows{to.dx, to.rounded, dy, residual, read.x, read.stats};
  heads_apart(read.x) > 1 ? backward_apart(rows) : backward_of(learned(), rows);
  gain_.grad.added();
  if (bias_) bias_->grad.added();
}

void Norm::each_parameter(const VisitParameter& visit) {
  if (learns()) visit(gain_);
  if (bias_) visit(*bias_);
}

}  // namespace weft
