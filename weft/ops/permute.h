// Choosing and moving rows: what a mixture of experts does with tokens.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

struct TopK {
  Tensor values;   // [.., k] of x's type, descending
  Tensor indices;  // i32 [.., k]; of equal values the lower index comes first
};
/// x f32 or f64 [.., e]
TopK top_k(const Tensor& x, std::int64_t k);

/// x [t, h], index i32 [n] -> [n, h]: row index[i], zeros where it is negative
Tensor gather_rows(const Tensor& x, const Tensor& index);
/// out [t, h] [index[i]] += weight[i] x[i, h], in ascending i; weight f32 [n] or empty (1); a negative index
/// is skipped
void scatter_add_rows_into(const Tensor& out, const Tensor& x, const Tensor& index,
                           const Tensor& weight = {});

}  // namespace weft::ops
