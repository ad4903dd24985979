// What batches that a test makes say of tokens beyond the next one.
#pragma once

#include "weft/nn/batch.h"
#include "weft/ops/elementwise.h"

namespace weft::testing {

/// x [s, b], so many places on; zeros behind the end.
inline Tensor places_on(const Tensor& x, std::int64_t places) {
  const Tensor out = ops::zeros(x.device(), x.shape(), x.dtype());
  const std::int64_t left = x.dim(0) - places;
  if (left > 0) ops::copy_into(out.slice(0, 0, left), x.slice(0, places, left));
  return out;
}

/// Of whole sequences, as far on as that.
inline void look_ahead(Batch& batch, int depths) {
  batch.further.clear();
  for (int k = 1; k <= depths; ++k)
    batch.further.push_back({.tokens = places_on(batch.text.tokens, k),
                             .positions = places_on(batch.text.positions, k),
                             .targets = places_on(batch.targets, k),
                             .mask = places_on(batch.mask, k)});
}

}  // namespace weft::testing
