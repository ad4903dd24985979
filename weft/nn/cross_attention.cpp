// Every layer makes keys and values of its own from the same memory, whose gradient is their sum.
#include "weft/nn/cross_attention.h"

#include "weft/ops/elementwise.h"

namespace weft {

Attended CrossAttention::views(const Tensor& q, const Tensor& kv) const {
  const Tensor keys = kv.split(2, {shape_.groups, 2, shape_.channels});
  return {q.split(2, {shape_.groups, 1, shape_.channels}), keys.at(3, 0), keys.at(3, 1)};
}

AttentionArgs CrossAttention::args(const Pass& pass) const {
  return {.scale = shape_.scale,
          .query_segments = pass.batch().text.segments,
          .key_segments = pass.batch().source.segments,
          .dropout = pass.training() ? shape_.dropout : 0,
          .at = pass.address(Purpose::dropout_attention, shape_.layer),
          .samples = pass.batch().samples,
          .head0 = shape_.head0};
}

Tensor CrossAttention::keys_values(const Pass& pass, const Tensor& memory) const {
  Encoded* encoded = pass.place().encoded;
  if (!encoded) return key_value_.forward(memory);
  Tensor& kept = encoded->keys_values[shape_.layer];
  if (!encoded->known) kept = key_value_.forward(memory);
  return kept;
}

Tensor CrossAttention::forward(Pass& pass, const Tensor& x, const Flow& beside) {
  Saved saved{
      .q = query_.forward(x), .kv = keys_values(pass, beside.memory), .memory = beside.memory, .kept = {}};
  saved.kept = context_attention(shape_.context, views(saved.q, saved.kv), args(pass));
  const Tensor o = saved.kept.out.o;
  pass.see("cross attention", shape_.layer, o);
  pass.save(std::move(saved));
  return project_.forward(o.view({o.dim(0), o.dim(1), width()}));
}

Tensor CrossAttention::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) {
  const Saved saved = pass.take<Saved>();
  const Tensor& o = saved.kept.out.o;
  const Tensor dout = project_.backward(pass, dy, o.view({o.dim(0), o.dim(1), width()})).view(o.shape());
  const Tensor dq = empty_like(saved.q), dkv = empty_like(saved.kv);
  const Attended grads = views(dq, dkv);
  context_attention_backward_into(shape_.context, {grads.q, grads.k, grads.v}, dout, saved.kept, args(pass));
  const Tensor dmemory = key_value_.backward(pass, dkv, saved.memory);
  if (dbeside.memory)
    ops::add_into(dbeside.memory, dbeside.memory, dmemory);
  else
    dbeside.memory = dmemory;
  return query_.backward(pass, dq, x);
}

void CrossAttention::each_parameter(const VisitParameter& visit) {
  query_.each_parameter(visit);
  key_value_.each_parameter(visit);
  project_.each_parameter(visit);
}

}  // namespace weft
