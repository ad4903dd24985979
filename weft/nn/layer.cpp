#include "weft/nn/layer.h"

namespace weft {

Flow Stage::forward(Pass& pass, Flow x) const {
  const Encoded* encoded = pass.place().encoded;
  for (std::size_t i = encoded && encoded->known ? encodes : 0; i < layers.size(); ++i) {
    const Lease lease(lender, int(i), Way::forward);
    x = layers[i]->forward(pass, x);
  }
  return x;
}

Flow Stage::backward(Pass& pass, Flow dy) const {
  for (std::size_t i = layers.size(); i-- > 0;) {
    const Lease lease(lender, int(i), Way::backward);
    dy = layers[i]->backward(pass, dy);
  }
  return dy;
}

void Stage::each_router(const VisitRouter& visit) const {
  for (const auto& layer : layers) layer->each_router(visit);
}

void Stage::each_parameter(const VisitParameter& visit) const {
  for (const auto& layer : layers) layer->each_parameter(visit);
}

}  // namespace weft
