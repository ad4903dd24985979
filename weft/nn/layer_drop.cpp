#include "weft/nn/layer_drop.h"

#include <algorithm>
#include <cmath>

#include "weft/base/random.h"

namespace weft {

double chance_to_stay(const LayerDrop& drop, std::int64_t step, const LayerPlace& at) {
  const auto t = double(std::max<std::int64_t>(step - 2, 0));
  const double theta = (1 - drop.theta) * std::exp(-drop.gamma * t) + drop.theta;
  return 1 - double(at.layer) / double(at.layers) * (1 - theta);
}

double weight_of_layer(const LayerDrop& drop, std::uint64_t seed, std::int64_t step, const LayerPlace& at) {
  const double p = chance_to_stay(drop, step, at);
  if (p >= 1) return 1;
  const Draw draw({.seed = seed,
                   .purpose = Purpose::layer_drop,
                   .step = std::uint64_t(step),
                   .layer = std::uint32_t(at.layer)});
  return draw.word(0) < share(p) ? 1 / p : 0;
}

int layers_kept(const LayerDrop& drop, std::uint64_t seed, std::int64_t step, int layers) {
  int kept = 0;
  for (int layer = 0; layer < layers; ++layer)
    kept += int(weight_of_layer(drop, seed, step, {layer, layers}) > 0);
  return kept;
}

}  // namespace weft
