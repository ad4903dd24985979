// Two exchanges around plain attention. Parts travel as [rank, half, steps, b, heads, d]; placing them puts
// the chunks of a sequence back in order.
#include "weft/nn/context_heads.h"

#include <vector>

#include "weft/base/number.h"
#include "weft/nn/context_parts.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// Of [n] or [n, ..] of all heads held here, those that this rank has whole sequences of.
Tensor traded_rows(const Tensor& all, const Communicator& circle, std::int64_t heads) {
  return all ? all.slice(0, circle.rank() * heads, heads) : Tensor();
}

/// x as [s, b, g, ...] with other steps and heads.
Shape resized(Dims x, std::int64_t steps, std::int64_t heads) {
  x[0] = steps;
  x[2] = heads;
  return Shape(x);
}

class Trade {
 public:
  explicit Trade(Communicator& circle) : circle_(circle), ranks_(circle.size()) {}

  /// x [s/c, b, g, ...] -> [s, b, g/c, ...]
  Tensor to_whole(const Tensor& x) const {
    const std::int64_t part = exact(x.dim(2), ranks_);
    const Tensor out = empty_parts(x, x.dim(0), part);
    for (std::int64_t r = 0; r < ranks_; ++r) ops::copy_into(out.at(0, r), x.slice(2, r * part, part));
    const Tensor in = exchanged(out);
    const Tensor whole = empty(x.device(), resized(x.shape(), x.dim(0) * ranks_, part), x.dtype());
    each_chunk(x.dim(0) / 2, [&](int rank, const ChunkRows& in_rank, std::int64_t at) {
      ops::copy_into(whole.slice(0, at, in_rank.count), in.at(0, rank).slice(0, in_rank.from, in_rank.count));
    });
    return whole;
  }

  /// x [s, b, g/c, ...] -> into [s/c, b, g, ...]
  void to_steps(const Tensor& into, const Tensor& x) const {
    const std::int64_t part = x.dim(2);
    const Tensor out = empty_parts(x, x.dim(0) / ranks_, part);
    each_chunk(x.dim(0) / ranks_ / 2, [&](int rank, const ChunkRows& in_rank, std::int64_t at) {
      ops::copy_into(out.at(0, rank).slice(0, in_rank.from, in_rank.count), x.slice(0, at, in_rank.count));
    });
    const Tensor in = exchanged(out);
    for (std::int64_t r = 0; r < ranks_; ++r) ops::copy_into(into.slice(2, r * part, part), in.at(0, r));
  }

  /// [b, s/c] -> [b, s]
  Tensor whole_segments(const Tensor& mine) const {
    if (!mine) return {};
    const Tensor all = empty(mine.device(), {ranks_ * mine.dim(0), mine.dim(1)}, mine.dtype());
    circle_.all_gather(all, ops::contiguous(mine)).wait();
    const Tensor parts = all.split(0, {ranks_, mine.dim(0)});
    const Tensor whole = empty(mine.device(), {mine.dim(0), ranks_ * mine.dim(1)}, mine.dtype());
    each_chunk(mine.dim(1) / 2, [&](int rank, const ChunkRows& in_rank, std::int64_t at) {
      ops::copy_into(whole.slice(1, at, in_rank.count),
                     parts.at(0, rank).slice(1, in_rank.from, in_rank.count));
    });
    return whole;
  }

 private:
  struct ChunkRows {
    std::int64_t from, count;
  };
  /// work(rank, where in that rank's part, where in the sequence)
  template <class Work>
  void each_chunk(std::int64_t chunk, const Work& work) const {
    const Zigzag places{int(ranks_), chunk};
    for (int rank = 0; rank < int(ranks_); ++rank)
      for (const int half : {0, 1}) work(rank, ChunkRows{half * chunk, chunk}, places.start(rank, half));
  }
  /// [c, steps, b, heads, ...]
  Tensor empty_parts(const Tensor& x, std::int64_t steps, std::int64_t heads) const {
    Dims dims{ranks_};
    const Shape part = resized(x.shape(), steps, heads);
    for (const std::int64_t n : part.all()) dims.push_back(n);
    return empty(x.device(), Shape(dims), x.dtype());
  }
  Tensor exchanged(const Tensor& out) const {
    const Tensor in = empty_like(out);
    const std::vector<std::int64_t> rows(std::size_t(ranks_), 1);
    circle_.all_to_all(in, out, rows, rows).wait();
    return in;
  }

  Communicator& circle_;
  std::int64_t ranks_;
};

AttentionArgs whole_args(const Trade& trade, const Communicator& circle, const Attended& whole,
                         const AttentionArgs& how) {
  AttentionArgs args = how;
  const std::int64_t heads = whole.q.dim(2) * whole.q.dim(3);
  args.head0 = how.head0 + circle.rank() * heads;
  args.query_segments = trade.whole_segments(how.query_segments);
  args.key_segments = trade.whole_segments(how.key_segments);
  args.bias = traded_rows(how.bias, circle, heads);
  args.sinks = traded_rows(how.sinks, circle, heads);
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
