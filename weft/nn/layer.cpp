// A stage is its layers, one after the other.
#include "weft/nn/layer.h"

namespace weft {

Flow Stage::forward(Pass& pass, Flow x) const {
  for (const auto& layer : layers) x = layer->forward(pass, x);
  return x;
}

Flow Stage::backward(Pass& pass, Flow dy) const {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) dy = (*layer)->backward(pass, dy);
  return dy;
}

void Stage::each_parameter(const VisitParameter& visit) const {
  for (const auto& layer : layers) layer->each_parameter(visit);
}

}  // namespace weft
