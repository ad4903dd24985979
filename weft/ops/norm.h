// Layer norm and RMS norm, alone or fused with the residual addition before them; factors of whole rows.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

struct NormOut {
  Tensor y;
  NormStats stats;  // f32, the leading dimensions of x
};
/// x [.., h], gain and bias [h] -> y [.., h] of gain's type
NormOut norm(const Tensor& x, const NormWeights& weights, const NormArgs& how);
void norm_into(const NormOut& out, const Tensor& x, const NormWeights& weights, const NormArgs& how);

/// dx [.., h] = (residual +) J^T dy; residual [.., h] may be empty, and dx may be dy or residual; rounded
/// [.., h], where given, gets dx too, and may be dy. dgain and dbias (f32 [h]; either may be empty) are added
/// to. With dgain (and dbias) [n, h], each of n equal pieces of x along its first dimension has a sum of its
/// own, of the bits that a call for this piece alone gives.
void norm_backward_into(const NormGrads& grads, const Tensor& dy, const Tensor& residual,
                        const NormSaved& saved, const NormArgs& how);

/// sum = residual + dropout(x + bias), y = norm(sum); all [s, b, h]. out.sum may be in.x or in.residual.
void sum_norm_into(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                   const NormArgs& how);

/// x [.., h], factor f32 [..] -> x * factor, row by row
Tensor scale_rows(const Tensor& x, const Tensor& factor);
void scale_rows_into(const Tensor& y, const Tensor& x, const Tensor& factor);
/// a, b [.., h] -> f32 [..]: the product of each pair of rows
Tensor dot_rows(const Tensor& a, const Tensor& b);

}  // namespace weft::ops
