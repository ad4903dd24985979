// Keys are put together in memory; queries and values are read where products left them.
#include "weft/nn/latent_attention.h"

#include "weft/base/number.h"
#include "weft/nn/earlier.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/rope.h"

namespace weft {
namespace {

/// x [s, b, n d] as [s, b, n, d]
Tensor heads_of(const Tensor& x, std::int64_t heads) { return x.split(2, {heads, exact(x.dim(2), heads)}); }

Tensor last(const Tensor& x, std::int64_t channels) { return x.slice(-1, x.dim(-1) - channels, channels); }
Tensor first(const Tensor& x, std::int64_t channels) { return x.slice(-1, 0, channels); }

}  // namespace

LatentAttention::Latent LatentAttention::latent(const Path& path, const Tensor& raw) const {
  if (!path.norm) return {raw, ops::contiguous(raw), {}};
  const Tensor normed = empty_like(raw);
  const NormStats stats = path.norm->forward_into(normed, raw);
  return {raw, normed, stats};
}

LatentAttention::Latents LatentAttention::press(const Tensor& x) const {
  Latents out;
  if (query_.down) out.query = latent(query_, query_.down->forward(x));
  out.pressed = key_value_.down->forward(x);
  out.key_value = latent(key_value_, first(out.pressed, out.pressed.dim(2) - shape_.turned));
  return out;
}

/// plain_keys [s, b, n, plain], and the key that all heads share -> [s, b, n, plain + turned]
Tensor LatentAttention::keys(const Pass& pass, const Tensor& plain_keys, const Latents& latents) const {
  const Tensor mine = last(latents.pressed, shape_.turned);
  const Tensor copy = empty_like(mine);
  ops::copy_into(copy, mine);
  const Tensor shared = enter(shape_.tp, copy).wait();
  if (heads().angles) ops::rope_in_place(shared, rope_args(pass, heads(), Turn::forward));
  const Tensor out =
      empty(plain_keys.device(), {plain_keys.dim(0), plain_keys.dim(1), heads().groups, heads().channels},
            plain_keys.dtype());
  ops::copy_into(first(out, plain()), plain_keys);
  for (std::int64_t head = 0; head < heads().groups; ++head)
    ops::copy_into(last(out.at(2, head), shape_.turned), shared);
  return out;
}

Attended LatentAttention::widen(const Pass& pass, const Latents& latents, const Tensor& x) const {
  const Tensor q = heads_of(query_.up.forward(query_.down ? latents.query.normed : x), heads().groups);
  if (heads().angles) ops::rope_in_place(last(q, shape_.turned), rope_args(pass, heads(), Turn::forward));
  const Tensor key_value = heads_of(key_value_.up.forward(latents.key_value.normed), heads().groups);
  return {q.split(2, {heads().groups, 1}), keys(pass, first(key_value, plain()), latents),
          last(key_value, shape_.value)};
}

Tensor LatentAttention::forward(Pass& pass, const Tensor& x, const Flow&) {
  Saved saved{press(x), {}};
  saved.kept =
      context_attention(heads().context, with_earlier(pass, heads().layer, widen(pass, saved.latents, x)),
                        attention_args(pass, heads(), {}, sinks_.scores()));
  const Tensor o = saved.kept.out.o;
  pass.see("attention", heads().layer, o);
  if (shape_.recompute) saved.kept.in = {};
  pass.save(std::move(saved));
  return project_.forward(o.view({o.dim(0), o.dim(1), heads().groups * shape_.value}));
}

/// dk [s, b, n, turned] -> f32 [s, b, turned]: a tree of leaves, each of which adds some heads in order.
Tensor LatentAttention::sum_over_heads(const Tensor& dk) const {
  const std::int64_t each = exact(dk.dim(2), shape_.leaves);
  const Tensor leaves = empty(dk.device(), {shape_.leaves, dk.dim(0), dk.dim(1), dk.dim(3)});
  for (std::int64_t i = 0; i < dk.dim(2); ++i) {
    const Tensor leaf = leaves.at(0, i / each), head = dk.at(2, i);
    if (i % each == 0)
      ops::copy_into(leaf, head);
    else
      ops::add_into(leaf, leaf, head);
  }
  return shape_.leaves == 1 ? leaves.at(0, 0) : added_as_tree(leaves);
}

LatentAttention::HeadGrads LatentAttention::widen_backward(const Pass& pass, const Saved& saved,
                                                           const Tensor& dout) {
  const auto [q, k, v] = saved.kept.in;
  const std::int64_t s = q.dim(0), b = q.dim(1), n = heads().groups;
  Device& device = q.device();
  const HeadGrads d{empty(device, {s, b, n * heads().channels}, q.dtype()),
                    empty(device, {s, b, n * (plain() + shape_.value)}, q.dtype()),
                    {}};
  const Tensor dq = heads_of(d.query, n), dk = empty_like(k), dkey_value = heads_of(d.key_value, n);
  const AttentionGrads into{dq.split(2, {n, 1}), dk, last(dkey_value, shape_.value), {}, false,
                            sinks_.grads()};
  context_attention_backward_into(heads().context, into, dout, saved.kept,
                                  attention_args(pass, heads(), {}, sinks_.scores()));
  sinks_.added();
  if (heads().angles) {
    ops::rope_in_place(last(dq, shape_.turned), rope_args(pass, heads(), Turn::backward));
    ops::rope_in_place(last(dk, shape_.turned), rope_args(pass, heads(), Turn::backward));
  }
  ops::copy_into(first(dkey_value, plain()), first(dk, plain()));
  return {d.query, d.key_value, sum_over_heads(last(dk, shape_.turned))};
}

Tensor LatentAttention::press_backward(Pass& pass, const Latents& latents, const HeadGrads& d,
                                       const Tensor& x) {
  const auto narrow = [&](Path& path, const Latent& latent, const Tensor& dheads) {
    const Tensor dlatent = path.up.backward(pass, dheads, latent.normed);
    return path.norm ? path.norm->backward(dlatent, {}, latent.raw, latent.stats) : dlatent;
  };
  const Tensor dpressed = empty_like(latents.pressed);
  Arriving shared = leave(shape_.tp, d.shared);
  const Tensor dlatent = narrow(key_value_, latents.key_value, d.key_value);
  ops::copy_into(first(dpressed, dlatent.dim(2)), dlatent);
  ops::copy_into(last(dpressed, shape_.turned), shared.wait());
  const Tensor dx = key_value_.down->backward(pass, dpressed, x);
  const Tensor more = query_.down ? query_.down->backward(pass, narrow(query_, latents.query, d.query), x)
                                  : query_.up.backward(pass, d.query, x);
  ops::add_into(dx, dx, more);
  return dx;
}

Tensor LatentAttention::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow&) {
  Saved saved = pass.take<Saved>();
  if (shape_.recompute) saved.kept.in = widen(pass, saved.latents, x);
  const Tensor& o = saved.kept.out.o;
  const Tensor flat = o.view({o.dim(0), o.dim(1), heads().groups * shape_.value});
  const Tensor dout = project_.backward(pass, dy, flat).view(o.shape());
  return press_backward(pass, saved.latents, widen_backward(pass, saved, dout), x);
}

void LatentAttention::each_parameter(const VisitParameter& visit) {
  for (Path* path : {&query_, &key_value_}) {
    if (path->down) path->down->each_parameter(visit);
    if (path->norm) path->norm->each_parameter(visit);
    path->up.each_parameter(visit);
  }
  sinks_.each_parameter(visit);
  project_.each_parameter(visit);
}

}  // namespace weft
