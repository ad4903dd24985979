// A norm, what stands behind it, and the addition to what came in: blocks are lists of these.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "weft/nn/flow.h"
#include "weft/nn/linear.h"
#include "weft/nn/norm.h"
#include "weft/nn/router.h"

namespace weft {

/// What stands between a norm and an addition: attention, to the sequence itself or to an encoder's, or an
/// MLP.
class Inner {
 public:
  virtual ~Inner() = default;
  /// x [s (/tp), b, h] -> y [s (/tp), b, h]; the last bias is left to the reader. `beside` is what else flows
  /// here.
  virtual Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) = 0;
  /// x as forward read it. Gradients of what was looked at in `beside` are added to `dbeside`.
  virtual Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) = 0;
  virtual Tensor bias_for_reader() const = 0;
  /// Whether backward adds `dbeside.hidden`, the gradient of the sum that this is a term of: x's, too.
  virtual bool adds_residual_grad() const { return false; }
  virtual void each_parameter(const VisitParameter& visit) = 0;
  /// That choose experts in it.
  virtual void each_router(const VisitRouter&) {}
};

struct Sublayer {
  const char* name;          // for whoever looks for numbers that are not finite
  std::optional<Norm> norm;  // none: it reads what came in as it is
  std::unique_ptr<Inner> inner;
};

}  // namespace weft
