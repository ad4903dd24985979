#include "weft/ops/norm.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/ops/dropout_door.h"

namespace weft::ops {
namespace {

/// All dimensions but the last.
Shape leading(const Tensor& x) {
  Dims dims;
  for (int i = 0; i + 1 < x.rank(); ++i) dims.push_back(x.dim(i));
  return Shape(dims);
}

NormStats empty_stats(const Tensor& x, const NormArgs& how) {
  NormStats stats;
  if (how.kind == NormKind::layer) stats.mean = empty(x.device(), leading(x));
  stats.rstd = empty(x.device(), leading(x));
  return stats;
}

void check_rows(const Door& door, const Tensor& x) {
  door.floats("x", x).ranked("x", x, 2, Dims::max_rank);
  if (x.dim(-1) == 0) door.refuse(Kind::shape, "x ", x.shape(), " has rows of no elements");
}

void check_stats(const Door& door, const Tensor& x, const NormStats& stats, NormKind kind) {
  if (kind == NormKind::layer)
    door.holds("mean", stats.mean, Dtype::f32, leading(x)).contiguous("mean", stats.mean);
  if (kind == NormKind::rms && stats.mean) door.refuse(Kind::shape, "an RMS norm has no mean");
  door.holds("rstd", stats.rstd, Dtype::f32, leading(x)).contiguous("rstd", stats.rstd);
}

void check_weights(const Door& door, const Tensor& x, const NormWeights& weights, NormKind kind) {
  door.floats("gain", weights.gain, {x.dim(-1)});
  if (kind == NormKind::layer && weights.bias) door.floats("bias", weights.bias, {x.dim(-1)});
  if (kind == NormKind::rms && weights.bias) door.refuse(Kind::shape, "an RMS norm has no bias");
}

}  // namespace

NormOut norm(const Tensor& x, const NormWeights& weights, const NormArgs& how) {
  const Door door("norm", x);
  check_rows(door, x);
  door.floats("gain", weights.gain);
  const NormOut out{empty(x.device(), x.shape(), weights.gain.dtype()), empty_stats(x, how)};
  norm_into(out, x, weights, how);
  return out;
}

void norm_into(const NormOut& out, const Tensor& x, const NormWeights& weights, const NormArgs& how) {
  const Door door("norm", x);
  check_rows(door, x);
  check_weights(door, x, weights, how.kind);
  check_stats(door, x, out.stats, how.kind);
  door.floats("y", out.y, x.shape());
  count::pass(x, Work::norm, count::norm,
              count::traffic(out.y, out.stats.mean, out.stats.rstd, x, weights.gain, weights.bias));
  x.device().kernels().norm(out.y, out.stats, x, weights, how);
}

void norm_backward_into(const NormGrads& grads, const Tensor& dy, const Tensor& residual,
                        const NormSaved& saved, const NormArgs& how) {
  const Tensor& x = saved.x;
  const Door door("norm_backward", x);
  check_rows(door, x);
  check_stats(door, x, saved.stats, how.kind);
  door.floats("gain", saved.gain, {x.dim(-1)}).floats("dy", dy, x.shape()).floats("dx", grads.dx, x.shape());
  if (residual) door.floats("residual", residual, x.shape());
  if (grads.rounded) door.floats("rounded", grads.rounded, x.shape());
  const std::int64_t pieces = grads.dgain && grads.dgain.rank() == 2 ? grads.dgain.dim(0) : 1;
  if (pieces < 1 || x.dim(0) % pieces != 0)
    door.refuse(Kind::shape, "dgain has ", pieces, " pieces of x ", x.shape(), ", which cannot be cut so");
  const Shape sums = grads.dgain && grads.dgain.rank() == 2 ? Shape{pieces, x.dim(-1)} : Shape{x.dim(-1)};
  if (grads.dgain) door.holds("dgain", grads.dgain, Dtype::f32, sums);
  if (grads.dbias && how.kind == NormKind::rms)
    door.refuse(Kind::shape, "an RMS norm has no bias to give a gradient to");
  if (grads.dbias) door.holds("dbias", grads.dbias, Dtype::f32, sums);
  count::pass(x, Work::norm, count::norm_backward,
              count::traffic(grads.dx, grads.rounded, grads.dgain, grads.dgain, grads.dbias, grads.dbias) +
                  count::traffic(dy, residual, x, saved.stats.mean, saved.stats.rstd, saved.gain));
  x.device().kernels().norm_backward(grads, dy, residual, saved, how);
}

void sum_norm_into(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                   const NormArgs& how) {
  const Tensor& x = in.x;
  const Door door("sum_norm", x);
  check_rows(door, x);
  check_dropout(door, x, in.dropout);
  check_weights(door, x, weights, how.kind);
  check_stats(door, x, out.stats, how.kind);
  if (in.bias) door.floats("bias", in.bias, {x.dim(-1)});
  door.floats("residual", in.residual, x.shape())
      .floats("sum", out.sum, x.shape())
      .floats("y", out.y, x.shape());
  count::pass(x, Work::norm, count::norm + count::dropout + 2,
              count::traffic(x, in.bias, in.residual, weights.gain, weights.bias) +
                  count::traffic(out.sum, out.y, out.stats.mean, out.stats.rstd));
  x.device().kernels().sum_norm(out, in, weights, how);
}

Tensor scale_rows(const Tensor& x, const Tensor& factor) {
  Door("scale_rows", x).floats("x", x);
  Tensor y = empty_like(x);
  scale_rows_into(y, x, factor);
  return y;
}

void scale_rows_into(const Tensor& y, const Tensor& x, const Tensor& factor) {
  const Door door("scale_rows", x);
  door.floats("x", x).ranked("x", x, 1, Dims::max_rank).floats("y", y, x.shape());
  door.holds("factor", factor, Dtype::f32, leading(x));
  count::pass(x, Work::elementwise, count::add, count::traffic(y, x, factor));
  x.device().kernels().scale_rows(y, x, factor);
}

Tensor dot_rows(const Tensor& a, const Tensor& b) {
  const Door door("dot_rows", a);
  door.floats("a", a).ranked("a", a, 1, Dims::max_rank).floats("b", b, a.shape());
  Tensor out = empty(a.device(), leading(a));
  count::pass(a, Work::elementwise, count::multiply_add, count::traffic(out, a, b));
  a.device().kernels().dot_rows(out, a, b);
  return out;
}

}  // namespace weft::ops
