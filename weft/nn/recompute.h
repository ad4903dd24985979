// Forgets what its layers saved and makes it again when backward comes.
#pragma once

#include "weft/nn/layer.h"

namespace weft {

/// Around one layer, or a run of them: only the input of the first is kept.
class RecomputeLayers final : public Layer {
 public:
  explicit RecomputeLayers(std::vector<std::unique_ptr<Layer>> inner) { inner_.layers = std::move(inner); }
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { inner_.each_parameter(visit); }
  void each_read(const VisitParameter& visit) override {
    for (const auto& layer : inner_.layers) layer->each_read(visit);
  }

 private:
  struct Saved {
    Flow x;
  };
  Stage inner_;
  Pass again_;  // kept for its memory; open only during backward
};

}  // namespace weft
