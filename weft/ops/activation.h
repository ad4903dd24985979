// Pointwise functions with the bias before them, and their gated forms.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// x [.., f], bias [f] or empty -> y [.., f]
Tensor activation(const Tensor& x, const Tensor& bias, Activation kind);
/// dy [.., f] -> dx [.., f]; the bias's gradient is the sum of dx over rows.
Tensor activation_backward(const Tensor& dy, const Tensor& x, const Tensor& bias, Activation kind);
/// dx may be dy.
void activation_backward_into(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                              Activation kind);

/// x [.., 2f] holds [gate | up], bias [2f] or empty -> y [.., f] = f(gate) (up + offset): swiglu is gated
/// silu, geglu gated gelu.
Tensor gated(const Tensor& x, const Tensor& bias, const Gate& gate);
/// dy [.., f] -> dx [.., 2f]
Tensor gated_backward(const Tensor& dy, const Tensor& x, const Tensor& bias, const Gate& gate);

}  // namespace weft::ops
