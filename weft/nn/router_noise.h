// Noise for routers: numbers by address, so that every layout and every recomputation has the same.
#pragma once

#include <cstdint>

#include "weft/nn/pass.h"

namespace weft {

enum class Noise : std::uint8_t {
  jitter,  // factors around 1
  logits,  // in the place of a router's own
};

struct NoiseShape {
  std::int64_t steps = 0, width = 0;
};
struct NoiseKind {
  Noise what = Noise::jitter;
  float most = 0;  // from 1
  int layer = 0;
};

/// f32 [steps, b, width], of whole sequences.
Tensor noise_for(const Pass& pass, const NoiseShape& shape, const NoiseKind& kind, Device& device);

}  // namespace weft
