// Conjugate pairs: what one does forward, the other does backward.
//
//   whole:         copy | sum         sum | copy
//   sequence cut:  gather | scatter   scatter | gather     (scatter: sum, each rank keeps its part of the
//   sequence)
#pragma once

#include "weft/nn/linear.h"

namespace weft {

/// A tensor on its way.
struct Arriving {
  Tensor x;
  Pending pending;
  Tensor wait() {
    pending.wait();
    return std::move(x);
  }
};

/// Into a cut layer: every rank needs the whole sequence. x [s (/tp), b, h] -> [s, b, h]
Arriving enter(const TensorParallel& tp, const Tensor& x);
/// Out of a cut layer: ranks hold parts of a sum. x [s, b, h] -> [s (/tp), b, h]; x may be overwritten.
Arriving leave(const TensorParallel& tp, const Tensor& x);

/// What the gradient of a weight that ranks hold whole is made of: a rank's part of the sequence where other
/// ranks' are terms of the same sum, else the whole sequence. x [s (/tp), b, h]
Tensor for_whole_weight(const TensorParallel& tp, const Tensor& x);

}  // namespace weft
