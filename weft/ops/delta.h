// Layers that remember: a filter over a few steps, the gated delta rule and state spaces (tensor/args.h).
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// x [s, b, g, c] -> y contiguous, silu and all
Tensor convolve(const Tensor& x, const Filters& filters);
void convolve_backward_into(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                            const Filters& filters);

/// -> o, shaped and typed like v, contiguous
Tensor delta_rule(const DeltaIn& in);
void delta_rule_backward_into(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in);

}  // namespace weft::ops
