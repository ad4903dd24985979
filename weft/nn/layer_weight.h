// What a layer that steps may leave out counts in a pass.
#pragma once

#include "weft/nn/layer_drop.h"
#include "weft/nn/pass.h"

namespace weft {

/// What it adds, and its losses, count so many times; 0 in a step that leaves it out, and 1 where nobody
/// trains.
inline float layer_weight(const Pass& pass, const LayerDrop& drop, const LayerPlace& at) {
  if (!pass.training() || !drop.on()) return 1;
  const StepPlace& step = pass.place();
  return float(weight_of_layer(drop, step.seed, std::int64_t(step.step), at));
}

}  // namespace weft
