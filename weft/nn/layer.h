// What a stage is made of. The only virtual forward in the house is here, because a stage is a mixed list.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "weft/nn/flow.h"
#include "weft/nn/lease.h"
#include "weft/nn/linear.h"
#include "weft/nn/pass.h"
#include "weft/nn/router.h"

namespace weft {

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Flow forward(Pass& pass, const Flow& x) = 0;
  virtual Flow backward(Pass& pass, const Flow& dy) = 0;
  virtual void each_parameter(const VisitParameter& visit) = 0;
  /// Its own parameters, and those of other layers that it multiplies with too.
  virtual void each_read(const VisitParameter& visit) { each_parameter(visit); }
  /// Of these, what backward multiplies with.
  virtual void each_read_back(const VisitParameter& visit) { each_read(visit); }
  /// That choose experts in it.
  virtual void each_router(const VisitRouter&) {}
};

struct Stage {
  std::vector<std::unique_ptr<Layer>> layers;
  Lender* lender = nullptr;  // none: all weights are here
  std::size_t encodes = 0;   // layers at its front that read an encoder's text only

  Flow forward(Pass& pass, Flow x) const;
  Flow backward(Pass& pass, Flow dy) const;
  void each_parameter(const VisitParameter& visit) const;
  void each_router(const VisitRouter& visit) const;
};

}  // namespace weft
