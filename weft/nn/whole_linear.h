// y = x W^T (+ b) of a matrix that every tensor-parallel rank holds whole.
#pragma once

#include "weft/nn/linear.h"

namespace weft {

/// Each rank multiplies the tokens that it has: all of them, as the others do, or its part of the sequence.
class WholeLinear {
 public:
  WholeLinear(Product product, const TensorParallel& tp) : product_(std::move(product)), tp_(tp) {}
  /// x [s (/tp), b, in] -> y [s (/tp), b, out]
  Tensor forward(const Tensor& x) const;
  /// dy [s (/tp), b, out] -> dx [s (/tp), b, in]; x as forward read it
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x);
  void each_parameter(const VisitParameter& visit) { product_.each_parameter(visit); }

 private:
  Product product_;
  TensorParallel tp_;
};

}  // namespace weft
