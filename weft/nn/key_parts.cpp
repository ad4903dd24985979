// Every part of the queries has a key head to itself, as attention sees it; what comes back is added in f32
// and rounded once.
#include "weft/nn/key_parts.h"

#include "weft/base/number.h"
#include "weft/nn/token_cut.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// [s, b, g, r, d] as [s, b, g p, r/p, d]
Shape shape_in_parts(const Tensor& q, std::int64_t parts) {
  return {q.dim(0), q.dim(1), q.dim(2) * parts, exact(q.dim(3), parts), q.dim(4)};
}

/// The same memory where that can be: not where keys lie between the queries of several groups.
bool seen_in_parts(const Tensor& q, std::int64_t parts) {
  return parts == 1 || q.dim(2) == 1 || q.contiguous();
}

Tensor in_parts(const Tensor& q, std::int64_t parts) {
  if (parts == 1) return q;
  if (q.dim(2) == 1) return q.at(2, 0).split(2, {parts, exact(q.dim(3), parts)});
  return ops::contiguous(q).view(shape_in_parts(q, parts));
}

/// [s, b, g, d] -> [s, b, g p, d]
Tensor repeated(const Tensor& k, std::int64_t parts) {
  if (parts == 1) return k;
  const Tensor out = empty(k.device(), {k.dim(0), k.dim(1), k.dim(2) * parts, k.dim(3)}, k.dtype());
  for (std::int64_t i = 0; i < parts; ++i) ops::copy_into(out.split(2, {k.dim(2), parts}).at(3, i), k);
  return out;
}

Attended in_parts(const Attended& heads, std::int64_t parts) {
  return {in_parts(heads.q, parts), repeated(heads.k, parts), repeated(heads.v, parts)};
}

/// Gradients of keys and values, f32 [g p, 2, s, b, d], and how others see them.
struct KeyGrads {
  Tensor all;
  Tensor seen(std::int64_t which) const { return all.at(1, which).permute({1, 2, 0, 3}); }
};

}  // namespace

ContextKept KeyParts::attention(const ContextParallel& context, const Attended& in,
                                const AttentionArgs& how) const {
  // No sum over heads is taken here: parts are of use only where they are traded for steps.
  if (here == 1 || !context.cut()) return context_attention(context, in, how);
  ContextKept kept = context_attention(context, in_parts(in, here), how);
  kept.in = in;
  kept.out.o = kept.out.o.view(ops::attended_shape(in));
  return kept;
}

void KeyParts::attention_backward_into(const ContextParallel& context, const AttentionGrads& grads,
                                       const Tensor& dout, const ContextKept& kept,
                                       const AttentionArgs& how) const {
  if (here == 1 && !sharers) return context_attention_backward_into(context, grads, dout, kept, how);
  const Tensor& q = kept.in.q;
  const std::int64_t groups = q.dim(2);
  const Shape parted = shape_in_parts(q, here);
  ContextKept parts = kept;
  if (!context.cut()) parts.in = in_parts(kept.in, here);
  parts.out.o = kept.out.o.view(parted);

  const bool in_place = seen_in_parts(grads.dq, here);
  const Tensor dq = in_place ? in_parts(grads.dq, here) : empty(q.device(), parted, q.dtype());
  const KeyGrads leaves{empty(q.device(), {groups * here, 2, q.dim(0), q.dim(1), q.dim(4)})};
  context_attention_backward_into(context,
                                  {dq, leaves.seen(0), leaves.seen(1), grads.dbias, false, grads.dsinks},
                                  dout.view(parted), parts, how);
  if (!in_place) ops::copy_into(grads.dq, dq.view(q.shape()));

  const KeyGrads sum{added_as_tree(leaves.all.split(0, {groups, here}).permute({1, 0, 2, 3, 4, 5}))};
  if (sharers) sharers->all_reduce(sum.all, Reduce::sum).wait();
  ops::copy_into(grads.dk, sum.seen(0));
  ops::copy_into(grads.dv, sum.seen(1));
}

}  // namespace weft
