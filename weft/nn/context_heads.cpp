// Two exchanges around plain attention.
#include "weft/nn/context_heads.h"

#include "weft/nn/head_trade.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// Of [n] or [n, ..] of all heads held here, those that this rank has whole sequences of.
Tensor traded_rows(const Tensor& all, const Communicator& circle, std::int64_t heads) {
  return all ? all.slice(0, circle.rank() * heads, heads) : Tensor();
}

AttentionArgs whole_args(const Trade& trade, const Communicator& circle, const Attended& whole,
                         const AttentionArgs& how) {
  AttentionArgs args = how;
  const std::int64_t heads = whole.q.dim(2) * whole.q.dim(3);
  args.head0 = how.head0 + circle.rank() * heads;
  args.query_segments = trade.whole_segments(how.query_segments);
  args.key_segments = trade.whole_segments(how.key_segments);
  args.bias = traded_rows(how.bias, circle, heads);
  args.sinks = traded_rows(how.sinks, circle, heads);
  args.greatest = traded_rows(how.greatest, circle, heads);
  return args;
}

}  // namespace

AttentionGrads grads_like(const Attended& heads, const AttentionGrads& types) {
  const auto like = [](const Tensor& x, const Tensor& dx) {
    return empty(x.device(), x.shape(), dx.dtype());
  };
  return {like(heads.q, types.dq), like(heads.k, types.dk), like(heads.v, types.dv)};
}

ContextKept heads_attention(const HeadTrade& how_traded, const Attended& in, const AttentionArgs& how) {
  Communicator& circle = how_traded.circle;
  const Trade trade(circle);
  ContextKept kept{.in = in, .out = {}, .whole = {}, .inner = {}};
  kept.whole = {trade.to_whole(in.q), trade.to_whole(in.k), trade.to_whole(in.v)};
  kept.inner =
      context_attention(how_traded.beyond, kept.whole, whole_args(trade, circle, kept.whole, how)).out;
  kept.out.o = empty(in.q.device(), ops::attended_shape(in), in.q.dtype());
  trade.to_steps(kept.out.o, kept.inner.o);
  return kept;
}

void heads_attention_backward_into(const HeadTrade& how_traded, const AttentionGrads& grads,
                                   const Tensor& dout, const ContextKept& kept, const AttentionArgs& how) {
  Communicator& circle = how_traded.circle;
  const Trade trade(circle);
  const Attended& whole = kept.whole;
  AttentionGrads inner = grads_like(whole, grads);
  const std::int64_t heads = whole.q.dim(2) * whole.q.dim(3);
  inner.dbias = traded_rows(grads.dbias, circle, heads);
  inner.dsinks = traded_rows(grads.dsinks, circle, heads);
  context_attention_backward_into(how_traded.beyond, inner, trade.to_whole(dout), {whole, kept.inner, {}, {}},
                                  whole_args(trade, circle, whole, how));
  trade.to_steps(grads.dq, inner.dq);
  trade.to_steps(grads.dk, inner.dk);
  trade.to_steps(grads.dv, inner.dv);
}

}  // namespace weft
