// Layers that remember: a filter over a few steps, and the gated delta rule (tensor/args.h).
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// x [s, b, g, c], weight [g, c, taps] -> y contiguous, silu and all
Tensor convolve(const Tensor& x, const Tensor& weight);
void convolve_backward_into(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                            const Tensor& weight);

/// -> o, shaped and typed like v, contiguous
Tensor delta_rule(const DeltaIn& in);
void delta_rule_backward_into(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in);

}  // namespace weft::ops
