// Ring, gather and heads: the same attention, with keys and values brought together in three ways.
#include "weft/nn/context_attention.h"

#include "weft/base/number.h"
#include "weft/nn/context_heads.h"
#include "weft/nn/context_parts.h"
#include "weft/nn/token_cut.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/sinks.h"

namespace weft {
namespace {

/// Keys and values of the steps held here, ready to travel.
Tensor packed(const Attended& in) {
  const std::int64_t d = in.k.dim(3);
  const Tensor out =
      empty(in.k.device(), {in.k.dim(0), in.k.dim(1), in.k.dim(2), d + in.v.dim(3)}, in.k.dtype());
  ops::copy_into(keys_of(out, d), in.k);
  ops::copy_into(values_of(out, d), in.v);
  return out;
}

void unpack_into(const AttentionGrads& grads, const Tensor& dkv) {
  const std::int64_t d = grads.dk.dim(3);
  ops::copy_into(grads.dk, keys_of(dkv, d));
  ops::copy_into(grads.dv, values_of(dkv, d));
}

/// Blocks that go round: what this rank has at turn t is of rank() - t.
class Ring {
 public:
  explicit Ring(Communicator& circle) : circle_(circle) {}
  int turns() const { return circle_.size(); }
  int owner(int turn) const { return (circle_.rank() - turn + circle_.size()) % circle_.size(); }

  /// One block on its way to the next rank, and the one that comes instead.
  struct Exchange {
    Tensor coming;
    Pending sent, received;
    Tensor wait() {
      received.wait();
      sent.wait();
      return std::move(coming);
    }
  };
  Exchange pass_on(const Tensor& block, int tag) const {
    Exchange exchange{empty_like(block), {}, {}};
    exchange.received = circle_.recv(exchange.coming, owner(1), tag);
    exchange.sent = circle_.send(block, (circle_.rank() + 1) % circle_.size(), tag);
    return exchange;
  }

 private:
  Communicator& circle_;
};
constexpr int keys_tag = 1;
constexpr int grads_tag = 2;

/// work(block, owner) for every rank's block; the next one travels meanwhile.
template <class Work>
void each_in_ring(const Ring& ring, Tensor block, const Work& work) {
  for (int turn = 0; turn < ring.turns(); ++turn) {
    Ring::Exchange exchange;
    const bool more = turn + 1 < ring.turns();
    if (more) exchange = ring.pass_on(block, keys_tag);
    work(block, ring.owner(turn));
    if (more) block = exchange.wait();
  }
}

/// The same for blocks that are all fetched at once; the own one is worked on meanwhile.
template <class Work>
void each_gathered(Communicator& circle, const Tensor& block, const Work& work) {
  const std::int64_t steps = block.dim(0);
  const Tensor all =
      empty(block.device(), {circle.size() * steps, block.dim(1), block.dim(2), block.dim(3)}, block.dtype());
  Pending fetched = circle.all_gather(all, block);
  const Ring order(circle);
  for (int turn = 0; turn < order.turns(); ++turn) {
    const int owner = order.owner(turn);
    if (turn == 1) fetched.wait();
    work(turn == 0 ? block : all.slice(0, steps * owner, steps), owner);
  }
}

Tensor all_segments(Communicator& circle, const Tensor& mine) {
  if (!mine) return {};
  const Tensor all = empty(mine.device(), {circle.size() * mine.dim(0), mine.dim(1)}, mine.dtype());
  circle.all_gather(all, ops::contiguous(mine)).wait();
  return all.split(0, {circle.size(), mine.dim(0)});
}

ContextParts parts_of(const ContextParallel& context, const Attended& in, const AttentionArgs& how) {
  return {*context.circle, in, how, all_segments(*context.circle, how.key_segments)};
}

// The gradient of a block goes round behind it and comes home after a whole turn.
void ring_backward(const ContextParallel& context, const ContextParts& parts, const AttentionGrads& grads,
                   const ContextBackward& queries, const Attended& in) {
  const Ring ring(*context.circle);
  const Tensor mine = packed(in);
  Ring::Exchange coming;
  each_in_ring(ring, mine, [&](const Tensor& block, int owner) {
    const Tensor dkv = ops::zeros(block.device(), block.shape());
    parts.add_backward(queries, dkv, block, owner);
    if (owner != context.circle->rank()) ops::add_into(dkv, dkv, coming.wait());
    coming = ring.pass_on(dkv, grads_tag);
  });
  unpack_into(grads, coming.wait());
}

void gather_backward(const ContextParallel& context, const ContextParts& parts, const AttentionGrads& grads,
                     const ContextBackward& queries, const Attended& in) {
  Communicator& circle = *context.circle;
  const Tensor mine = packed(in);
  const std::int64_t steps = mine.dim(0);
  const Tensor all =
      ops::zeros(mine.device(), {circle.size() * steps, mine.dim(1), mine.dim(2), mine.dim(3)});
  each_gathered(circle, mine, [&](const Tensor& block, int owner) {
    parts.add_backward(queries, all.slice(0, steps * owner, steps), block, owner);
  });
  const Tensor home = empty(mine.device(), mine.shape());
  circle.reduce_scatter(home, all).wait();
  unpack_into(grads, home);
}

// In exact mode no sum over keys or queries is cut: ranks have whole sequences of their share of the heads,
// or where the heads cannot be shared, of all of them.
bool trades_heads(const ContextParallel& context, const Attended& in) {
  if (context.sums.whole_attention()) return in.k.dim(2) % context.circle->size() == 0;
  const bool two = context.form == ContextForm::two_levels && context.inner->size() > 1;
  return two || context.form == ContextForm::heads;
}

HeadTrade trade_of(const ContextParallel& context) {
  const bool two = context.form == ContextForm::two_levels && !context.sums.whole_attention();
  if (!two) return {*context.circle, {}};
  return {*context.inner, {context.outer, ContextForm::ring, context.sums}};
}

/// What forward did.
bool traded(const ContextKept& kept) { return kept.whole.q && kept.whole.q.dim(2) != kept.out.o.dim(2); }

Tensor whole_segments(const TokenCut& cut, const Tensor& mine) {
  return mine ? ops::contiguous(cut.whole(mine.permute({1, 0})).permute({1, 0})) : Tensor();
}

AttentionArgs whole_args(const TokenCut& cut, const AttentionArgs& how) {
  AttentionArgs args = how;
  args.query_segments = whole_segments(cut, how.query_segments);
  args.key_segments = whole_segments(cut, how.key_segments);
  return args;
}

ContextKept whole_attention(const TokenCut& cut, const Attended& in, const AttentionArgs& how) {
  ContextKept kept{.in = in, .out = {}, .whole = {}, .inner = {}};
  kept.whole = {cut.whole(in.q), cut.whole(in.k), cut.whole(in.v)};
  kept.inner = ops::attention(kept.whole, whole_args(cut, how));
  kept.out.o = cut.here(kept.inner.o);
  return kept;
}

void whole_attention_backward_into(const TokenCut& cut, const AttentionGrads& grads, const Tensor& dout,
                                   const ContextKept& kept, const AttentionArgs& how) {
  const Attended& whole = kept.whole;
  AttentionGrads inner = grads_like(whole, grads);
  // All ranks compute all of it, and ranks' gradients are added up.
  if (cut.rank() == 0) {
    inner.dbias = grads.dbias;
    inner.dsinks = grads.dsinks;
  }
  ops::attention_backward_into(inner, cut.whole(dout), kept.inner, whole, whole_args(cut, how));
  ops::copy_into(grads.dq, cut.here(inner.dq));
  ops::copy_into(grads.dk, cut.here(inner.dk));
  ops::copy_into(grads.dv, cut.here(inner.dv));
}

}  // namespace

ContextLevels context_levels(Communicator& circle, int inner) {
  const int rank = circle.rank();
  return {.inner = circle.split(rank / inner, rank), .outer = circle.split(rank % inner, rank)};
}

ContextKept context_attention(const ContextParallel& context, const Attended& in, const AttentionArgs& how) {
  if (!context.cut()) return {in, ops::attention(in, how), {}, {}};
  if (trades_heads(context, in)) return heads_attention(trade_of(context), in, how);
  if (context.sums.whole_attention()) return whole_attention(TokenCut(context.circle), in, how);
  ContextParts parts = parts_of(context, in, how);
  const AttentionOut sum = parts.empty_sum();
  const auto add = [&](const Tensor& block, int owner) { parts.add(sum, block, owner); };
  if (context.form == ContextForm::gather)
    each_gathered(*context.circle, packed(in), add);
  else
    each_in_ring(Ring(*context.circle), packed(in), add);
  if (how.sinks) ops::add_sinks(sum, how.sinks);
  return {in, {ops::cast(sum.o, in.q.dtype()), sum.lse}, {}, {}};
}

void context_attention_backward_into(const ContextParallel& context, const AttentionGrads& grads,
                                     const Tensor& dout, const ContextKept& kept, const AttentionArgs& how) {
  const Attended& in = kept.in;
  if (!context.cut()) return ops::attention_backward_into(grads, dout, kept.out, in, how);
  if (traded(kept)) return heads_attention_backward_into(trade_of(context), grads, dout, kept, how);
  if (context.sums.whole_attention())
    return whole_attention_backward_into(TokenCut(context.circle), grads, dout, kept, how);
  const ContextParts parts = parts_of(context, in, how);
  const ContextBackward queries{ops::zeros(in.q.device(), in.q.shape()), dout, kept.out, grads.dbias};
  if (context.form == ContextForm::gather)
    gather_backward(context, parts, grads, queries, in);
  else
    ring_backward(context, parts, grads, queries, in);
  ops::copy_into(grads.dq, queries.dq);
  if (grads.dsinks) ops::add_sink_grads(grads.dsinks, dout, kept.out, how.sinks);
}

}  // namespace weft
