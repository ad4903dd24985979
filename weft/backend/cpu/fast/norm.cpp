// Norms row by row; gradients of gain and bias by pieces of rows.
#include <algorithm>

#include "weft/backend/cpu/fast/drop_rows.h"
#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

/// The gain as it multiplies; room: twice as many.
const float* FastKernels::arranged_gain(const Tensor& gain, const NormArgs& how, fast::Walk walk,
                                        float* room) const {
  const float* as_is = arranged(gain, walk, room);
  if (!how.one_plus_gain) return as_is;
  for (std::int64_t j = 0; j < gain.elements(); ++j) room[j] = 1 + as_is[j];
  return room;
}

namespace {

/// Where the statistics of rows lie; they are f32 and whole.
struct Stats {
  explicit Stats(const NormStats& stats)
      : mean(stats.mean ? stats.mean.data<float>() : nullptr), rstd(stats.rstd.data<float>()) {}
  fast::NormRows rows(const Lines& y, fast::InRows x, std::int64_t first, std::int64_t count) const {
    return {y.outs(first), x, count, mean ? mean + first : nullptr, rstd + first};
  }
  void put(std::int64_t i, const fast::NormRow& stats) const {
    if (mean) mean[i] = stats.mean;
    rstd[i] = stats.rstd;
  }
  float* mean;
  float* rstd;
};

bool whole(const NormStats& stats) {
  return (!stats.mean || stats.mean.contiguous()) && stats.rstd.contiguous();
}

}  // namespace

void FastKernels::norm(const Tensor& y, const NormStats& stats, const Tensor& x, const NormWeights& weights,
                       const NormArgs& how) {
  if (!ready({&y, &x, &weights.gain, &weights.bias}) || !whole(stats))
    return ReferenceKernels::norm(y, stats, x, weights, how);
  const Lines to(y, {&x});
  const Lines from(x);
  const std::int64_t h = to.width();
  const fast::Walk walk = fast::walk_of(to.type(), from.type());
  float* room = scratch_.take<float>(3 * h);
  const float* gain = arranged_gain(weights.gain, how, walk, room);
  const float* bias = arranged(weights.bias, walk, room + h);
  const Stats kept(stats);
  const fast::NormShape shape = {how.kind, how.epsilon, h};
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    const std::int64_t together = to.even() && from.even() ? last - first : 1;
    for (std::int64_t i = first; i < last; i += together)
      loops_.norm.forward(kept.rows(to, from.ins(i), i, together), gain, bias, shape);
    loops_.elementwise.finish();
  });
}

void FastKernels::sum_norm(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                           const NormArgs& how) {
  if (!ready({&out.sum, &out.y, &in.x, &in.bias, &in.residual, &weights.gain, &weights.bias}) ||
      !whole(out.stats))
    return ReferenceKernels::sum_norm(out, in, weights, how);
  const Lines to(out.y, {&in.x, &in.residual});
  const Lines total(out.sum, {&in.x, &in.residual});
  const Lines from(in.x);
  const Lines old(in.residual);
  const fast::DropRows drops(in.dropout, few_);
  const std::int64_t h = to.width();
  const fast::Walk walk = fast::walk_of(to.type(), total.type());
  const fast::Walk sum_walk = fast::walk_of(total.type(), from.type(), old.type());
  // Statistics have the bits of a norm by itself only in its order.
  const bool wide = h > fast::narrow_row && walk == sum_walk;
  const std::int64_t together = h > fast::narrow_row ? 2 : 4;
  float* room = scratch_.take<float>((4 + threads_ * together) * h);
  const float* gain = arranged_gain(weights.gain, how, walk, room);
  const float* bias = arranged(weights.bias, walk, room + h);
  const float* more = arranged(in.bias, sum_walk, room + 2 * h);
  const Stats kept(out.stats);
  const fast::NormShape shape = {how.kind, how.epsilon, h};
  const auto sum_of = [&](std::int64_t i, float* copy) {
    return fast::SumRow{total.out(i), copy, from.in(i), more, old.in(i), drops.row(i)};
  };
  const auto by_groups = [&](std::int64_t first, std::int64_t last, float* copies) {
    const std::int64_t step = to.even() && h <= fast::narrow_row ? together : 1;
    for (std::int64_t i = first; i < last; i += step) {
      const fast::InRows sums = {{copies, total.type()}, h * std::int64_t{sizeof(float)}};
      const fast::NormRows rows = kept.rows(to, sums, i, std::min(step, last - i));
      for (std::int64_t k = 0; k < rows.count; ++k) loops_.norm.sum(sum_of(i + k, copies + k * h), h);
      loops_.norm.forward(rows, gain, bias, shape);
    }
  };
  // Each row is written while the next is summed, so there are two copies in turn.
  const auto by_rows = [&](std::int64_t first, std::int64_t last, float* copies) {
    fast::NormDue due = {};
    for (std::int64_t i = first; i < last; ++i) {
      float* copy = copies + i % 2 * h;
      const fast::NormRow stats = loops_.norm.sum_wide(sum_of(i, copy), i > first ? &due : nullptr, shape);
      due = {to.out(i), {copy, total.type()}, stats, gain, bias};
      kept.put(i, stats);
    }
    fast::NormRows rest = kept.rows(to, {due.x, 0}, last - 1, 1);
    rest.known = &due.stats;
    loops_.norm.forward(rest, gain, bias, shape);
  };
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    float* copies = room + (4 + fast::me() * together) * h;
    if (wide && last > first)
      by_rows(first, last, copies);
    else
      by_groups(first, last, copies);
    loops_.elementwise.finish();
  });
}

void FastKernels::norm_backward(const NormGrads& grads, const Tensor& dy, const Tensor& residual,
                                const NormSaved& saved, const NormArgs& how) {
  if (!ready(
          {&grads.dx, &grads.dgain, &grads.dbias, &grads.rounded, &dy, &residual, &saved.x, &saved.gain}) ||
      !whole(saved.stats))
    return ReferenceKernels::norm_backward(grads, dy, residual, saved, how);
  const Tensor& again = grads.rounded ? grads.dx : grads.rounded;
  const Lines to(grads.dx, {&dy, &residual, &saved.x, &again});
  const Lines rounded(grads.rounded);
  const Lines given(dy);
  const Lines old(residual);
  const Lines from(saved.x);
  const std::int64_t h = to.width();
  const std::int64_t sets = grads.dgain && grads.dgain.rank() == 2 ? grads.dgain.dim(0) : 1;
  const std::int64_t rows = to.count() / sets;
  const fast::Pieces pieces(rows);
  const fast::Walk walk =
      fast::walk_of(to.type(), given.type(), residual ? old.type() : to.type(), from.type());
  float* room = scratch_.take<float>((2 + 2 * sets * pieces.count()) * h);
  const float* gain = arranged_gain(saved.gain, how, walk, room);
  float* sums = room + 2 * h;
  const Stats kept(saved.stats);
  const fast::NormShape shape = {how.kind, how.epsilon, h};
  const bool even = to.even() && given.even() && old.even() && from.even();
  in_parallel(threads_, sets * pieces.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t start = p / pieces.count() * rows, piece = p % pieces.count();
      float* dgain = sums + 2 * p * h;
      std::fill_n(dgain, 2 * h, 0.0F);
      const std::int64_t end = start + pieces.first(piece + 1);
      // What is rounded is read again, so few rows are made before it is.
      const std::int64_t most = grads.rounded ? 2 : end - start - pieces.first(piece);
      for (std::int64_t i = start + pieces.first(piece); i < end;) {
        const std::int64_t together = even ? std::min(most, end - i) : 1;
        loops_.norm.backward({to.outs(i), given.ins(i), old.ins(i), from.ins(i), together,
                              kept.mean ? kept.mean + i : nullptr, kept.rstd + i},
                             gain, grads.dgain ? dgain : nullptr, grads.dbias ? dgain + h : nullptr, shape);
        const std::int64_t next = i + together;
        for (; i < next; ++i)
          if (grads.rounded) loops_.elementwise.copy(rounded.out(i), to.in(i), h);
      }
      if (walk != fast::Walk::bf16) continue;
      loops_.elementwise.restore(dgain, h);
      loops_.elementwise.restore(dgain + h, h);
    }
    loops_.elementwise.finish();
  });
  const auto sum_of = [&](const Tensor& sum, std::int64_t set) {
    return sets > 1 ? sum.at(0, set) : sum.view({h});
  };
  for (std::int64_t set = 0; set < sets; ++set) {
    float* mine = sums + 2 * set * pieces.count() * h;
    if (grads.dgain) add_pieces(sum_of(grads.dgain, set), mine, 2 * h, pieces.count());
    if (grads.dbias) add_pieces(sum_of(grads.dbias, set), mine + h, 2 * h, pieces.count());
  }
}

}  // namespace weft
