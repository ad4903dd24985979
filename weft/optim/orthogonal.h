// The nearest matrix whose rows, or columns, are orthogonal and of length one, about: what Muon makes of
// momentum.
#pragma once

#include <array>
#include <span>

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// One step takes every singular value s to a s + b s^3 + c s^5.
using QuinticStep = std::array<double, 3>;

/// Five steps, each as steep as singular values then allow, and one that is good for all of them.
std::span<const QuinticStep> quintic_steps();
std::span<const QuinticStep> simple_steps();

struct NewtonSchulz {
  std::span<const QuinticStep> rounds = quintic_steps();  // taken in turn
  int steps = 5;
  Dtype dtype = Dtype::bf16;  // of operands; sums are f32
};

/// Whose rows, or columns, ranks hold a part of each.
struct MatrixCut {
  Communicator* circle = nullptr;  // none: all of it is here
  int dim = 0;
};

/// x f32 [rows, columns], of any strides, becomes scale times U V^T, where x = U S V^T. Products over the
/// shorter side; where ranks hold parts of it, over the side that is whole, and collective. The host waits
/// for nothing.
void orthogonalize(const Tensor& x, const NewtonSchulz& how, float scale, const MatrixCut& cut = {});

}  // namespace weft
