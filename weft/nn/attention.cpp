// One product makes [g][r queries, as many gates if heads have them, key, value][d] for every token;
// attention reads it through strides, copying nothing.
#include "weft/nn/attention.h"

#include "weft/nn/earlier.h"
#include "weft/ops/activation.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/rope.h"

namespace weft {

RopeArgs rope_args(const Pass& pass, const AttentionShape& shape, Turn turn) {
  return rope_args(pass, shape, shape.angles, turn);
}

RopeArgs rope_args(const Pass& pass, const AttentionShape& shape, const Tensor& angles, Turn turn) {
  const Sequences& steps = pass.batch().of(shape.side);
  return {.angles = angles,
          .positions = steps.restarted ? steps.positions.permute({1, 0}) : steps.places,
          .pairing = shape.pairing,
          .turn = turn};
}

namespace {

/// [gate | up] that a gate of ones lets through, up to a limit of 1 or more.
Tensor beside_ones(const Tensor& x) {
  const std::int64_t f = x.dim(2);
  const Tensor wide = empty(x.device(), {x.dim(0), x.dim(1), 2 * f}, x.dtype());
  ops::fill(wide.slice(2, 0, f), 1);
  ops::copy_into(wide.slice(2, f, f), x);
  return wide;
}

/// x [s, b, f], kept within a limit on both sides; what was cut off learns nothing.
Tensor limited(const Tensor& x, float limit) {
  return ops::gated(beside_ones(x), {}, {Activation::relu, limit, 0});
}
Tensor limited_backward(const Tensor& dy, const Tensor& x, float limit) {
  const Tensor both = ops::gated_backward(dy, beside_ones(x), {}, {Activation::relu, limit, 0});
  return ops::contiguous(both.slice(2, x.dim(2), x.dim(2)));
}

/// What is computed again was looked at before.
Tensor greatest_scores(const Pass& pass, const AttentionShape& shape) {
  const Tensor& all = pass.place().greatest_scores;
  if (!all || pass.again() || shape.layer >= all.dim(0)) return {};
  return all.at(0, shape.layer).slice(0, shape.head0, shape.groups * shape.per_group);
}

}  // namespace

AttentionArgs attention_args(const Pass& pass, const AttentionShape& shape, const Tensor& biases,
                             const Tensor& sinks) {
  // One text by itself has no documents, and what fills it up stands behind it, where no query looks.
  const bool by_itself = shape.mask == Mask::causal && pass.place().earlier;
  const Tensor segments = by_itself ? Tensor() : pass.batch().of(shape.side).segments;
  const std::int64_t before = shape.mask == Mask::causal ? tokens_before(pass) : 0;
  return {.scale = shape.scale,
          .cap = shape.cap,
          .mask = shape.mask,
          .diagonal = before,
          .window = shape.window,
          .chunk = shape.chunk,
          .query_segments = segments,
          .key_segments = segments,
          .bias = biases ? biases : shape.falling,
          .bias0 = shape.no_distance + before,
          .sinks = sinks,
          .greatest = greatest_scores(pass, shape),
          .dropout = pass.training() ? shape.dropout : 0,
          .at = pass.address(Purpose::dropout_attention, shape.layer),
          .samples = pass.batch().samples,
          .head0 = shape.head0,
          .query0 = before};
}

Attended SelfAttention::views(const Tensor& qkv) const {
  const std::int64_t rows = shape_.rows_of_group();
  const Tensor heads = qkv.split(2, {shape_.groups, rows, shape_.channels});
  return {heads.slice(3, 0, shape_.per_group), heads.at(3, rows - 2), heads.at(3, rows - 1)};
}

Tensor SelfAttention::gates(const Tensor& qkv) const {
  return qkv.split(2, {shape_.groups, shape_.rows_of_group(), shape_.channels})
      .slice(3, shape_.per_group, shape_.per_group);
}

namespace {

/// [s, b, .., d] as [s, b, channels of all heads], in order.
Tensor together(const Tensor& heads) {
  return ops::contiguous(heads).view(
      {heads.dim(0), heads.dim(1), heads.elements() / heads.dim(0) / heads.dim(1)});
}

/// Of the heads of all ranks: [s, b, .., d] -> [s, b, all channels]
Tensor of_all_ranks(Communicator& ranks, const Tensor& heads) {
  const Tensor own = together(heads);
  if (ranks.size() == 1) return own;
  const Tensor all = empty(own.device(), {ranks.size(), own.dim(0), own.dim(1), own.dim(2)}, own.dtype());
  ranks.all_gather(all, own).wait();
  return ops::contiguous(all.permute({1, 2, 0, 3})).view({own.dim(0), own.dim(1), ranks.size() * own.dim(2)});
}

/// And back: this rank's heads, of so many channels, where they lie among all.
Tensor of_this_rank(const Communicator& ranks, const Tensor& all, std::int64_t channels) {
  return all.slice(2, ranks.rank() * channels, channels);
}

/// Each rank makes the norm of all heads, and keeps its own.
NormStats norm_own(const SelfAttention::HeadNorms& norms, const Norm& norm, const Tensor& own,
                   const Tensor& heads) {
  const Tensor all = of_all_ranks(*norms.whole, heads);
  if (norms.whole->size() == 1) return norm.forward_into(own, all);
  const Norm::Out normed = norm.forward(all);
  ops::copy_into(own, of_this_rank(*norms.whole, normed.y, own.dim(2)));
  return normed.stats;
}

/// d [s, b, .., d] of this rank's heads is replaced.
void norm_own_backward(const SelfAttention::HeadNorms& norms, const Norm& norm, const Tensor& d,
                       const Tensor& heads, const NormStats& stats) {
  Communicator& ranks = *norms.whole;
  const Tensor dx = norm.backward(of_all_ranks(ranks, d), {}, of_all_ranks(ranks, heads), stats);
  Dims parts;
  std::int64_t channels = 1;
  for (int i = 2; i < d.rank(); ++i) {
    parts.push_back(d.dim(i));
    channels *= d.dim(i);
  }
  ops::copy_into(d, of_this_rank(ranks, dx, channels).split(2, Shape(parts)));
}

}  // namespace

// Queries and keys from the normed copy, values from where the product left them.
Attended SelfAttention::normed_views(const Saved& saved) const {
  const auto [g, r, d] = std::array{shape_.groups, shape_.per_group, shape_.channels};
  if (norms_->whole)
    return {saved.qk.slice(2, 0, g * r * d).split(2, {g, r, d}),
            saved.qk.slice(2, g * r * d, g * d).split(2, {g, d}), views(saved.qkv).v};
  const Tensor heads = saved.qk.split(2, {g, r + 1, d});
  return {heads.slice(3, 0, r), heads.at(3, r), views(saved.qkv).v};
}

void SelfAttention::norm_heads(Saved& saved) const {
  const Attended raw = views(saved.qkv);
  const Shape qk{saved.qkv.dim(0), saved.qkv.dim(1),
                 shape_.groups * (shape_.per_group + 1) * shape_.channels};
  saved.qk = empty(saved.qkv.device(), qk, saved.qkv.dtype());
  const Attended normed = normed_views(saved);
  if (norms_->whole) return norm_whole(saved, raw);
  saved.q_stats = norms_->q.forward_into(normed.q, raw.q);
  saved.k_stats = norms_->k.forward_into(normed.k, raw.k);
}

void SelfAttention::norm_whole(Saved& saved, const Attended& raw) const {
  const std::int64_t q = shape_.groups * shape_.per_group * shape_.channels;
  saved.q_stats = norm_own(*norms_, norms_->q, saved.qk.slice(2, 0, q), raw.q);
  saved.k_stats = norm_own(*norms_, norms_->k, saved.qk.slice(2, q, saved.qk.dim(2) - q), raw.k);
}

void SelfAttention::norm_whole_backward(const Saved& saved, const Attended& dqkv) {
  const Attended raw = views(saved.qkv);
  norm_own_backward(*norms_, norms_->q, dqkv.q, raw.q, saved.q_stats);
  norm_own_backward(*norms_, norms_->k, dqkv.k, raw.k, saved.k_stats);
}

void SelfAttention::norm_heads_backward(const Saved& saved, const Attended& dqkv) {
  if (norms_->whole) return norm_whole_backward(saved, dqkv);
  const Attended raw = views(saved.qkv);
  (void)norms_->q.backward(dqkv.q, {}, raw.q, saved.q_stats);
  (void)norms_->k.backward(dqkv.k, {}, raw.k, saved.k_stats);
}

void SelfAttention::turn(const Pass& pass, const Attended& heads, Turn turn) const {
  const Tensor& of_queries = shape_.query_angles ? shape_.query_angles : shape_.angles;
  if (of_queries) ops::rope_in_place(heads.q, rope_args(pass, shape_, of_queries, turn));
  if (shape_.angles) ops::rope_in_place(heads.k, rope_args(pass, shape_, turn));
}

// Gates are cheap to open again, so what they let through is not kept for backward.
Tensor SelfAttention::open(const Saved& saved) const {
  return shape_.gated ? ops::activation(gates(saved.qkv), {}, Activation::sigmoid) : Tensor();
}

// Of open gates the memory serves what comes back through them.
Tensor SelfAttention::said_backward(const Saved& saved, const Tensor& open, const Tensor& d,
                                    const Tensor& dqkv) const {
  if (!open) return d;
  const Tensor dopen = ops::multiply(d, saved.kept.out.o);
  ops::activation_backward_into(gates(dqkv), dopen, gates(saved.qkv), {}, Activation::sigmoid);
  ops::multiply_into(open, open, d);
  return open;
}

void SelfAttention::make(Pass& pass, Saved& saved) const {
  if (shape_.limit > 0) {
    saved.raw = saved.qkv;
    saved.qkv = limited(saved.raw, shape_.limit);
  }
  if (!norms_ || shape_.normed_last) turn(pass, views(saved.qkv), Turn::forward);
  if (norms_) norm_heads(saved);
  if (norms_ && !shape_.normed_last) turn(pass, normed_views(saved), Turn::forward);
}

void SelfAttention::turn_and_norm_backward(Pass& pass, const Saved& saved, const Attended& grads) {
  if (!norms_ || !shape_.normed_last) turn(pass, grads, Turn::backward);
  if (norms_) norm_heads_backward(saved, grads);
  if (norms_ && shape_.normed_last) turn(pass, grads, Turn::backward);
}

Tensor SelfAttention::forward(Pass& pass, const Tensor& x, const Flow& beside) {
  Saved saved{.biases = beside.biases};
  saved.qkv = qkv_.forward(x);
  make(pass, saved);
  const Attended heads = norms_ ? normed_views(saved) : views(saved.qkv);
  const Attended all = shape_.mask == Mask::causal ? with_earlier(pass, shape_.layer, heads) : heads;
  saved.kept = shape_.parts.attention(shape_.context, all,
                                      attention_args(pass, shape_, beside.biases, sinks_.scores()));
  pass.see("attention", shape_.layer, saved.kept.out.o);
  Tensor y = saved.kept.out.o;
  if (const Tensor open = this->open(saved)) {
    ops::multiply_into(open, open, y);
    y = open;
  }
  pass.save(std::move(saved));
  return project_.forward(together(y));
}

Tensor SelfAttention::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  const Saved saved = pass.take<Saved>();
  if (saved.biases && !dbeside.biases)
    dbeside.biases = ops::zeros(saved.biases.device(), saved.biases.shape());
  const Tensor dqkv = empty_like(saved.qkv), open = this->open(saved);
  const Tensor &o = saved.kept.out.o, y = open ? ops::multiply(open, o) : o;
  const Tensor dsaid = project_.backward(pass, dy, together(y)).view(o.shape());
  const Tensor dout = said_backward(saved, open, dsaid, dqkv);
  const Attended grads = views(dqkv);
  const AttentionGrads into{grads.q, grads.k, grads.v, dbeside.biases, false, sinks_.grads()};
  shape_.parts.attention_backward_into(shape_.context, into, dout, saved.kept,
                                       attention_args(pass, shape_, saved.biases, sinks_.scores()));
  sinks_.added();
  turn_and_norm_backward(pass, saved, grads);
  return qkv_.backward(pass, saved.raw ? limited_backward(dqkv, saved.raw, shape_.limit) : dqkv, x);
}

void SelfAttention::each_parameter(const VisitParameter& visit) {
  qkv_.each_parameter(visit);
  if (norms_) {
    norms_->q.each_parameter(visit);
    norms_->k.each_parameter(visit);
  }
  sinks_.each_parameter(visit);
  project_.each_parameter(visit);
}

}  // namespace weft
