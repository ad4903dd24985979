// Doors of attention: shapes, masks, and positions that an address can hold.
#include "weft/ops/attention.h"

#include <cmath>

#include "weft/ops/attention_chunks.h"
#include "weft/ops/attention_limits.h"
#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/ops/dropout_door.h"
#include "weft/ops/sinks.h"

namespace weft::ops {
namespace {

Shape lse_shape(const Tensor& q) { return {q.dim(1), q.dim(2) * q.dim(3), q.dim(0)}; }

void check_operands(const Door& door, const Attended& in) {
  door.floats("q", in.q).ranked("q", in.q, 5, 5).floats("k", in.k).ranked("k", in.k, 4, 4);
  const Shape keys{in.k.dim(0), in.q.dim(1), in.q.dim(2), in.q.dim(4)};
  door.shaped("k", in.k, keys).floats("v", in.v).ranked("v", in.v, 4, 4);
  door.shaped("v", in.v, {keys[0], keys[1], keys[2], in.v.dim(3)});
  if (in.q.dtype() != in.k.dtype() || in.q.dtype() != in.v.dtype())
    door.refuse(Kind::shape, "q is ", in.q.dtype(), ", k ", in.k.dtype(), " and v ", in.v.dtype());
  if (in.q.dim(4) == 0 || in.v.dim(3) == 0) door.refuse(Kind::shape, "heads have no channels");
  door.dense_rows("q", in.q).dense_rows("k", in.k).dense_rows("v", in.v);
}

void check_dropout(const Door& door, const Attended& in, const AttentionArgs& how) {
  check_probability(door, how.dropout);
  if (how.dropout == 0) return;
  door.holds("samples", how.samples, Dtype::i64, {in.q.dim(1)}).contiguous("samples", how.samples);
  if (how.head0 < 0 || how.query0 < 0 || how.key0 < 0 ||
      how.head0 + in.q.dim(2) * in.q.dim(3) > most_dropout_heads ||
      how.query0 + in.q.dim(0) > most_dropout_positions || how.key0 + in.k.dim(0) > most_dropout_positions)
    door.refuse(Kind::usage, "dropout numbers at most ", most_dropout_positions, " positions and ",
                most_dropout_heads, " heads; set the attention dropout to 0 for longer sequences");
}

void check_bias(const Door& door, const Attended& in, const AttentionArgs& how) {
  if (!how.bias) return;
  const std::int64_t heads_here = in.q.dim(2) * in.q.dim(3), sq = in.q.dim(0), sk = in.k.dim(0);
  door.ranked("bias", how.bias, 2, 2).holds("bias", how.bias, Dtype::f32, {heads_here, how.bias.dim(1)});
  door.dense_rows("bias", how.bias);
  if (sq > 0 && sk > 0 && (how.bias0 < sk - 1 || how.bias0 + sq > how.bias.dim(1)))
    door.refuse(Kind::shape, "bias has distances ", -how.bias0, " to ", how.bias.dim(1) - 1 - how.bias0,
                ", but queries and keys are ", 1 - sk, " to ", sq - 1, " apart");
}

void check_cap(const Door& door, const AttentionArgs& how) {
  if (how.cap < 0 || !std::isfinite(how.cap))
    door.refuse(Kind::usage, "a cap of ", how.cap, "; expected a number above 0, or 0 for none");
  if (how.cap > 0 && how.bias) door.refuse(Kind::usage, "scores have a cap or a bias, not both");
}

void check(const Door& door, const Attended& in, const AttentionArgs& how) {
  check_operands(door, in);
  const Tensor& q = in.q;
  if (bool(how.query_segments) != bool(how.key_segments))
    door.refuse(Kind::shape, "segments are given for ", how.query_segments ? "queries" : "keys", " only");
  if (how.query_segments) {
    door.holds("query_segments", how.query_segments, Dtype::i32, {q.dim(1), q.dim(0)});
    door.holds("key_segments", how.key_segments, Dtype::i32, {q.dim(1), in.k.dim(0)});
    door.dense_rows("query_segments", how.query_segments).dense_rows("key_segments", how.key_segments);
  }
  check_bias(door, in, how);
  if (how.window < 0) door.refuse(Kind::usage, "a window of ", how.window, " keys");
  if (how.chunk < 0) door.refuse(Kind::usage, "chunks of ", how.chunk, " keys");
  check_cap(door, how);
  check_dropout(door, in, how);
  if (how.greatest)
    door.holds("greatest", how.greatest, Dtype::f32, {in.q.dim(2) * in.q.dim(3)})
        .contiguous("greatest", how.greatest);
}

void check_out(const Door& door, const AttentionOut& out, const Attended& in) {
  door.floats("o", out.o, attended_shape(in)).dense_rows("o", out.o);
  door.holds("lse", out.lse, Dtype::f32, lse_shape(in.q)).dense_rows("lse", out.lse);
}

std::int64_t mask_bytes(const AttentionArgs& how) {
  return count::traffic(how.query_segments, how.key_segments, how.bias);
}

void attend(const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
  count::attention(in, how, count::attention_products,
                   count::traffic(in.q, in.k, in.v, out.o, out.lse, out.greatest) + mask_bytes(how));
  in.q.device().kernels().attention(out, in, how);
}

/// Of all heads here, in all chunks.
void attend_in_chunks(const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
  if (how.chunk == 0) return attend(out, in, how);
  each_chunk({in, how}, [&](const Chunk& one) { attend(one.of(out), one.in, one.how); });
}

/// Scores are nowhere, but every query knows its greatest when it is done.
void attend_and_tell(AttentionOut out, const Attended& in, const AttentionArgs& how) {
  out.greatest = empty(in.q.device(), lse_shape(in.q));
  attend_in_chunks(out, in, how);
  if (out.greatest.elements() == 0) return;
  count::pass(out.greatest, Work::attention, 1, count::traffic(out.greatest, how.greatest, how.greatest));
  in.q.device().kernels().raise_greatest(how.greatest, out.greatest);
}

void attend_backward(const AttentionGrads& grads, const Tensor& dout, const AttentionOut& out,
                     const Attended& in, const AttentionArgs& how) {
  const std::int64_t written = count::traffic(grads.dq, grads.dk, grads.dv);
  count::attention(in, how, count::attention_backward_products,
                   count::traffic(in.q, in.k, in.v, dout, out.o, out.lse) + mask_bytes(how) + written +
                       (grads.accumulate ? written : 0) + 2 * count::traffic(grads.dbias));
  in.q.device().kernels().attention_backward(grads, dout, out, in, how);
}

}  // namespace

Shape attended_shape(const Attended& in) {
  Shape shape = in.q.shape();
  shape[4] = in.v.dim(3);
  return shape;
}

AttentionOut attention(const Attended& in, const AttentionArgs& how) {
  const Door door("attention", in.q);
  check(door, in, how);
  AttentionOut out{empty(in.q.device(), attended_shape(in), in.q.dtype()),
                   empty(in.q.device(), lse_shape(in.q))};
  attention_into(out, in, how);
  return out;
}

void attention_into(const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
  const Door door("attention", in.q);
  check(door, in, how);
  check_out(door, out, in);
  how.greatest ? attend_and_tell(out, in, how) : attend_in_chunks(out, in, how);
  if (how.sinks) add_sinks(out, how.sinks);
}

void attention_backward_into(const AttentionGrads& grads, const Tensor& dout, const AttentionOut& out,
                             const Attended& in, const AttentionArgs& how) {
  const Door door("attention_backward", in.q);
  check(door, in, how);
  check_out(door, out, in);
  door.floats("dout", dout, attended_shape(in)).dense_rows("dout", dout);
  door.floats("dq", grads.dq, in.q.shape()).dense_rows("dq", grads.dq);
  door.floats("dk", grads.dk, in.k.shape()).dense_rows("dk", grads.dk);
  door.floats("dv", grads.dv, in.v.shape()).dense_rows("dv", grads.dv);
  if (grads.dsinks && !how.sinks) door.refuse(Kind::shape, "dsinks is given where there are no sinks");
  if (grads.dbias && !how.bias) door.refuse(Kind::shape, "dbias is given where there is no bias");
  if (grads.dbias)
    door.holds("dbias", grads.dbias, Dtype::f32, how.bias.shape()).dense_rows("dbias", grads.dbias);
  if (how.chunk == 0)
    attend_backward(grads, dout, out, in, how);
  else
    each_chunk({in, how}, [&](const Chunk& one) {
      attend_backward(one.of(grads), one.of_queries(dout), one.of(out), one.in, one.how);
    });
  if (grads.dsinks) add_sink_grads(grads.dsinks, dout, out, how.sinks);
}

void merge_attention(const AttentionOut& into, const AttentionOut& part) {
  const Door door("merge_attention", into.o);
  door.floats("o", into.o).ranked("o", into.o, 5, 5).floats("part.o", part.o, into.o.shape());
  door.holds("lse", into.lse, Dtype::f32, lse_shape(into.o))
      .holds("part.lse", part.lse, Dtype::f32, lse_shape(into.o));
  door.dense_rows("o", into.o).dense_rows("part.o", part.o);
  count::pass(into.o, Work::attention, 3,
              count::traffic(into.o, into.o, part.o, into.lse, into.lse, part.lse));
  into.o.device().kernels().merge_attention(into, part);
}

}  // namespace weft::ops
