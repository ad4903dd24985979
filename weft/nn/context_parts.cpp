// A pair of chunks is attention with another diagonal; sums of parts are merged by their log-sum-exp.
#include "weft/nn/context_parts.h"

#include "weft/ops/attention.h"

namespace weft {

ContextParts::ContextParts(const Communicator& circle, Attended in, AttentionArgs how, Tensor key_segments)
    : rank_(circle.rank()),
      queries_{circle.size(), in.q.dim(0) / 2},
      keys_{circle.size(), in.k.dim(0) / 2},
      in_(std::move(in)),
      how_(std::move(how)),
      key_segments_(std::move(key_segments)) {}

AttentionOut ContextParts::empty_sum() const {
  const Tensor& q = in_.q;
  return {empty(q.device(), ops::attended_shape(in_)),
          empty(q.device(), {q.dim(1), q.dim(2) * q.dim(3), q.dim(0)})};
}

bool ContextParts::sees(const Pair& pair) const {
  const std::int64_t query0 = queries_.start(rank_, pair.query_half);
  const std::int64_t key0 = keys_.start(pair.owner, pair.key_half);
  if (how_.mask == Mask::causal && key0 > query0) return false;
  if (how_.chunk > 0 && (key0 + keys_.chunk - 1) / how_.chunk < query0 / how_.chunk) return false;
  return how_.window == 0 || key0 + keys_.chunk > query0 - how_.window + 1;
}

AttentionArgs ContextParts::args(const Pair& pair) const {
  AttentionArgs args = how_;
  args.query0 = queries_.start(rank_, pair.query_half);
  args.key0 = keys_.start(pair.owner, pair.key_half);
  args.diagonal = args.query0 - args.key0;
  args.bias0 += args.diagonal;
  args.sinks = {};  // taken once, of all keys together
  if (how_.query_segments) {
    args.query_segments = half(how_.query_segments, 1, pair.query_half);
    args.key_segments = half(key_segments_.at(0, pair.owner), 1, pair.key_half);
  }
  return args;
}

Attended ContextParts::operands(const Pair& pair, const Tensor& keys_values) const {
  const Tensor some = half(keys_values, 0, pair.key_half);
  const std::int64_t d = in_.k.dim(3);
  return {half(in_.q, 0, pair.query_half), keys_of(some, d), values_of(some, d)};
}

void ContextParts::add(const AttentionOut& sum, const Tensor& keys_values, int owner) {
  each_pair(owner, [&](const Pair& pair) {
    const AttentionOut mine{half(sum.o, 0, pair.query_half), half(sum.lse, 2, pair.query_half)};
    bool& begun = begun_[std::size_t(pair.query_half)];
    if (begun) {
      const AttentionOut part{empty(mine.o.device(), mine.o.shape()),
                              empty(mine.lse.device(), mine.lse.shape())};
      ops::attention_into(part, operands(pair, keys_values), args(pair));
      ops::merge_attention(mine, part);
    } else {
      ops::attention_into(mine, operands(pair, keys_values), args(pair));
      begun = true;
    }
  });
}

void ContextParts::add_backward(const ContextBackward& mine, const Tensor& dkv, const Tensor& keys_values,
                                int owner) const {
  each_pair(owner, [&](const Pair& pair) {
    const AttentionOut out{half(mine.out.o, 0, pair.query_half), half(mine.out.lse, 2, pair.query_half)};
    const Tensor some = half(dkv, 0, pair.key_half);
    const std::int64_t d = in_.k.dim(3);
    const AttentionGrads grads{half(mine.dq, 0, pair.query_half), keys_of(some, d), values_of(some, d),
                               mine.dbias, true};
    ops::attention_backward_into(grads, half(mine.dout, 0, pair.query_half), out, operands(pair, keys_values),
                                 args(pair));
  });
}

}  // namespace weft
