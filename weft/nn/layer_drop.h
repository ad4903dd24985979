// Progressive layer drop: layers that a step leaves out by chance, the more of them the longer a run lasts.
#pragma once

#include <cstdint>

namespace weft {

/// Layer l of L, counted from 0, is kept with the probability p = 1 - l / L (1 - theta_t), and what it adds
/// then counts 1 / p times, so that the mean over all draws is what the whole layer adds. theta_t falls from
/// 1 to theta: (1 - theta) exp(-gamma t) + theta (Zhang and He: Accelerating training of transformer-based
/// language models with progressive layer dropping; 2020), where t is 0 in steps 1 and 2 and k - 2 in step k,
/// as DeepSpeed's engine counts.
///
/// A draw knows seed, step and layer only: all microbatches of a step go through the same layers, so all
/// ranks do, and no layout, recomputation or resume sees another draw.
struct LayerDrop {
  double theta = 1;  // 1: every layer is kept
  double gamma = 0.001;

  bool on() const { return theta < 1; }
};

struct LayerPlace {
  int layer = 0, layers = 1;  // of the whole model
};
/// p.
double chance_to_stay(const LayerDrop& drop, std::int64_t step, const LayerPlace& at);
/// 1 / p where the layer is kept, 0 where it is left out.
double weight_of_layer(const LayerDrop& drop, std::uint64_t seed, std::int64_t step, const LayerPlace& at);
/// How many of the layers a step goes through.
int layers_kept(const LayerDrop& drop, std::uint64_t seed, std::int64_t step, int layers);

}  // namespace weft
