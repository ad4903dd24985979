// A layer's attention sinks: what each head gives to no key.
#pragma once

#include <optional>

#include "weft/nn/linear.h"

namespace weft {

/// A score for each head held here, in its every softmax: none at all, always zero, or learned.
class Sinks {
 public:
  Sinks() = default;
  explicit Sinks(Tensor fixed) : fixed_(std::move(fixed)) {}
  explicit Sinks(Parameter learned) : learned_(std::move(learned)) {}
  /// f32 [n]; empty: none
  Tensor scores() const;
  /// Where their gradient is added, after which one says so; empty: nobody learns.
  Tensor grads() const { return learned_ ? learned_->grad.sum() : Tensor(); }
  void added() const;
  void each_parameter(const VisitParameter& visit);

 private:
  Tensor fixed_;
  std::optional<Parameter> learned_;
};

}  // namespace weft
