// Softmax over the last dimension, with masks, and its logarithm's sum.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// x [b, .., sq, sk] -> y. Causal: key j <= query i + sk - sq. padding u8 [b, sk] (0 is masked) or empty. A
/// row that sees nothing becomes zeros.
Tensor softmax(const Tensor& x, Mask mask = Mask::none, const Tensor& padding = {});
/// y may be x.
void softmax_into(const Tensor& y, const Tensor& x, Mask mask = Mask::none, const Tensor& padding = {});
/// y is what softmax gave; masks need not be told again.
Tensor softmax_backward(const Tensor& dy, const Tensor& y);
/// x [.., e] -> f32 [..]: log of the sum of exp(x). Its derivative is softmax(x).
Tensor log_sum_exp(const Tensor& x);

}  // namespace weft::ops
