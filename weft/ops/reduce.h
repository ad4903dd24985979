// Whole tensors to one number. Results stay on the device; weft/tensor/host.h reads them.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// f64 [1]; x of any type
Tensor sum(const Tensor& x);
/// f64 [1]: the greatest |x|, NaN where x holds one, 0 where x is empty
Tensor max_abs(const Tensor& x);
/// i64 [1]: the index of the first element that is not finite, -1 if all are
Tensor find_nonfinite(const Tensor& x);
/// i64 [1]: how many elements are zero
Tensor count_zeros(const Tensor& x);

/// digits += the sum of x. Digits, f64 [exact_digits], are a sum that does not depend on order
/// (tensor/exact_sum.h), zeros at first; a plain f64 all-reduce adds those of many ranks.
void sum_exact_into(const Tensor& digits, const Tensor& x);
/// digits += the sum of squares of x
void sum_squares_into(const Tensor& digits, const Tensor& x);
/// ratios f32 [n] = |a| / |b|, where digits f64 [n, 2, exact_digits] are sums of a's and of b's squares;
/// 1 / |b| of digits [n, 1, exact_digits].
void norm_ratios_into(const Tensor& ratios, const Tensor& digits, const NormRatioArgs& how = {});

}  // namespace weft::ops
