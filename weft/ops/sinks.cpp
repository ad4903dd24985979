// A sink is a part of the keys like another one (merge_attention), whose values are zeros.
#include "weft/ops/sinks.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"

namespace weft::ops {
namespace {

std::int64_t heads_of(const Tensor& o) { return o.dim(2) * o.dim(3); }

void check(const Door& door, const AttentionOut& out, const Tensor& sinks) {
  door.floats("o", out.o).ranked("o", out.o, 5, 5).dense_rows("o", out.o);
  const std::int64_t heads = heads_of(out.o);
  door.holds("lse", out.lse, Dtype::f32, {out.o.dim(1), heads, out.o.dim(0)});
  door.holds("sinks", sinks, Dtype::f32, {heads}).contiguous("sinks", sinks);
}

/// What every query of a head sees there: one row of zeros in memory, and one score a head.
AttentionOut part_of(const Tensor& o, const Tensor& sinks) {
  Tensor zero = zeros(o.device(), {o.dim(4)}, o.dtype());
  for (const int dim : {3, 2, 1, 0}) zero = zero.row_of(o.dim(dim), 0);
  return {zero, sinks.row_of(o.dim(1), 0).row_of(o.dim(0), 0).permute({1, 2, 0})};
}

}  // namespace

void add_sinks(const AttentionOut& out, const Tensor& sinks) {
  const Door door("add_sinks", out.o);
  check(door, out, sinks);
  if (out.o.elements() == 0) return;
  count::pass(out.o, Work::attention, 1, count::traffic(out.o, out.o, out.lse, out.lse, sinks));
  out.o.device().kernels().merge_attention(out, part_of(out.o, sinks));
}

// Its value is zero, so a row's derivative by the score is its share of the softmax times -<dout, o>.
void add_sink_grads(const Tensor& dsinks, const Tensor& dout, const AttentionOut& out, const Tensor& sinks) {
  const Door door("add_sink_grads", out.o);
  check(door, out, sinks);
  door.holds("dsinks", dsinks, Dtype::f32, sinks.shape()).floats("dout", dout, out.o.shape());
  if (out.o.elements() == 0) return;
  const Shape rows{out.o.dim(0), out.o.dim(1), heads_of(out.o)};
  const Tensor terms = dot_rows(dout, out.o).view(rows), lse = contiguous(out.lse.permute({2, 0, 1}));
  count::pass(terms, Work::attention, count::softmax, count::traffic(terms, terms, lse, sinks));
  terms.device().kernels().sink_terms(terms, lse, sinks);
  sum_rows_into(dsinks, terms);
}

}  // namespace weft::ops
