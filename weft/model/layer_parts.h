// What a layer is made of: whoever lists parameters, builds or counts asks here.
#pragma once

#include <array>

#include "weft/model/config.h"

namespace weft {

/// Each behind a norm and beside a residual.
enum class LayerPart : std::uint8_t { attention, delta, state, mlp, experts };

/// Of one layer, which has one of each at most. On the stack: a step's operations are counted by these.
class LayerParts {
 public:
  void push_back(LayerPart part);
  const LayerPart* begin() const { return parts_.data(); }
  const LayerPart* end() const { return begin() + count_; }
  LayerPart operator[](std::size_t i) const { return parts_[i]; }

 private:
  std::array<LayerPart, 5> parts_{};
  std::size_t count_ = 0;
};

/// In the order of the layer. Layers of further tokens are numbered on behind the others.
LayerParts parts_of_layer(const ModelConfig& config, int layer);
bool has_part(const ModelConfig& config, int layer, LayerPart part);
/// Parts of this kind in all layers, those of further tokens once for every depth.
int parts_in_all(const ModelConfig& config, LayerPart part);

/// A model of so many layers that are all as one of this model's, without further tokens.
ModelConfig layers_alike(const ModelConfig& config, int layer, int count);

/// Checks letters, and makes of them what other settings would have said.
void complete_hybrid(ModelConfig& config);

}  // namespace weft
