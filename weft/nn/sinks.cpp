#include "weft/nn/sinks.h"

#include "weft/ops/elementwise.h"

namespace weft {

Tensor Sinks::scores() const { return learned_ ? ops::cast(learned_->value, Dtype::f32) : fixed_; }

void Sinks::added() const {
  if (learned_) learned_->grad.added();
}

void Sinks::each_parameter(const VisitParameter& visit) {
  if (learned_) visit(*learned_);
}

}  // namespace weft
