#include "weft/nn/earlier.h"

#include "weft/ops/delta.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

Tensor room_for(const Tensor& heads, std::int64_t room) {
  Shape shape = heads.shape();
  shape[0] = room;
  return empty(heads.device(), shape, heads.dtype());
}

/// Behind what `kept` has of earlier tokens; comes back: all of them.
Tensor put_behind(Tensor& kept, const Earlier& earlier, const Tensor& heads) {
  if (!kept) kept = room_for(heads, earlier.room);
  const std::int64_t now = heads.dim(0);
  ops::copy_into(kept.slice(0, earlier.tokens, now), heads);
  return kept.slice(0, 0, earlier.tokens + now);
}

Tensor& begun(Tensor& kept, const Earlier& earlier, const Tensor& like, const Shape& shape, Dtype dtype) {
  if (earlier.tokens == 0) kept = ops::zeros(like.device(), shape, dtype);
  return kept;
}

/// The first steps of all that has any.
DeltaIn front_of(DeltaIn in, std::int64_t steps) {
  for (Tensor* each : {&in.q, &in.k, &in.v, &in.decay, &in.rate})
    if (*each) *each = each->slice(0, 0, steps);
  return in;
}

}  // namespace

std::int64_t tokens_before(const Pass& pass) {
  const Earlier* earlier = pass.place().earlier;
  return earlier ? earlier->tokens : 0;
}

Attended with_earlier(const Pass& pass, int layer, const Attended& heads) {
  Earlier* earlier = pass.place().earlier;
  if (!earlier) return heads;
  Earlier::KeysValues& kept = earlier->layers[layer];
  return {heads.q, put_behind(kept.keys, *earlier, heads.k), put_behind(kept.values, *earlier, heads.v)};
}

Tensor filter_on(const Pass& pass, int layer, const Tensor& x, const Filters& filters) {
  Earlier* earlier = pass.place().earlier;
  const std::int64_t before = filters.weight.dim(2) - 1;
  if (!earlier || before == 0) return ops::convolve(x, filters);
  Shape shape = x.shape();
  shape[0] = before;
  const Tensor& last = begun(earlier->memories[layer].last, *earlier, x, shape, x.dtype());
  shape[0] += x.dim(0);
  const Tensor all = empty(x.device(), shape, x.dtype());
  ops::copy_into(all.slice(0, 0, before), last);
  ops::copy_into(all.slice(0, before, x.dim(0)), x);
  ops::copy_into(last, all.slice(0, earlier->now, before));
  return ops::convolve(all, filters).slice(0, before, x.dim(0));
}

// What fills a pass up leaves no mark.
Tensor remember_on(const Pass& pass, int layer, const DeltaIn& in) {
  Earlier* earlier = pass.place().earlier;
  if (!earlier) return ops::delta_rule(in);
  DeltaIn now = front_of(in, earlier->now);
  const Shape& v = in.v.shape();
  now.memory = begun(earlier->memories[layer].memory, *earlier, in.v, {v[1], v[2], v[3], in.q.dim(3), v[4]},
                     Dtype::f32);
  if (earlier->now == v[0]) return ops::delta_rule(now);
  const Tensor o = ops::zeros(in.v.device(), v, in.v.dtype());
  ops::copy_into(o.slice(0, 0, earlier->now), ops::delta_rule(now));
  return o;
}

}  // namespace weft
