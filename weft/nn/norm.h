// Layer norm and RMS norm with their weights.
#pragma once

#include <optional>

#include "weft/nn/linear.h"
#include "weft/tensor/args.h"

namespace weft {

class Norm {
 public:
  Norm(Parameter gain, std::optional<Parameter> bias, const NormArgs& args)
      : gain_(std::move(gain)), bias_(std::move(bias)), args_(args) {}
  struct Out {
    Tensor y;
    NormStats stats;
  };
  /// x [.., h] -> y [.., h]
  Out forward(const Tensor& x) const;
  /// y is given: a view with gaps, say
  NormStats forward_into(const Tensor& y, const Tensor& x) const;
  /// sum = residual + dropout(x + bias), y = norm(sum), in one pass; x is overwritten by sum
  SumNormOut forward_sum(const SumNormIn& in) const;
  /// y again, from what backward kept
  Tensor again(const Tensor& x) const { return forward(x).y; }
  /// dx = residual + J^T dy, written over dy
  Tensor backward(const Tensor& dy, const Tensor& residual, const Tensor& x, const NormStats& stats);
  void each_parameter(const VisitParameter& visit);

 private:
  NormStats make_stats(const Tensor& x) const;
  NormWeights weights() const { return {gain_.value, bias_ ? bias_->value : Tensor()}; }
  Parameter gain_;
  std::optional<Parameter> bias_;
  NormArgs args_;
};

}  // namespace weft
