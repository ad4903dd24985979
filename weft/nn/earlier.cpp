#include "weft/nn/earlier.h"

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

}  // namespace weft
