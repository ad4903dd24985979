// What a stage is made of. The only virtual forward in the house is here, because a stage is a mixed list.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "weft/nn/linear.h"
#include "weft/nn/pass.h"

namespace weft {

/// What travels between layers and between pipeline stages.
struct Flow {
  Tensor hidden;  // [s, b, h]
  Tensor memory;  // [s_enc, b, h] for decoders that look at an encoder, else empty
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Flow forward(Pass& pass, const Flow& x) = 0;
  virtual Flow backward(Pass& pass, const Flow& dy) = 0;
  virtual void each_parameter(const VisitParameter& visit) = 0;
};

struct Stage {
  std::vector<std::unique_ptr<Layer>> layers;
  std::unique_ptr<Communicator> sharers = nullptr;  // of key groups, where layers add among them

  Flow forward(Pass& pass, Flow x) const;
  Flow backward(Pass& pass, Flow dy) const;
  void each_parameter(const VisitParameter& visit) const;
};

}  // namespace weft
