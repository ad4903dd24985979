// Matrix products: plain, batched, grouped, with accumulation and bias.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// a [.., m, k] b [k, n] -> [.., m, n] (leading dimensions of a are merged, if a is read as it is), or
/// a [batch, m, k] b [batch, k, n] -> [batch, m, n]. Of a's type. Any operand may be a transposed view.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulArgs& how = {});
/// out is f32 or of the operands' type. Where out or a matrix is f64 the sums are in double: a and b may then
/// be of two types, and out is f64 or f32.
void matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how = {});

/// Whether products of this type on x's device and an activation are one walk over memory.
bool activates_products(const Tensor& x, Activation f);
struct Activated {
  Tensor before, after;  // f
};
/// a [m, k] b [k, n] (+ bias) and f of it.
Activated matmul_activated(const Tensor& a, const Tensor& b, const ActivatedArgs& how);
/// f'(before) * (a b): the gradient of what an activation read, `before` [m, n], from a gradient a behind it.
Tensor matmul_derived(const Tensor& a, const Tensor& b, const Tensor& before, const ActivatedArgs& how);

/// dw [m, n] (+)= dy^T x and db [m] += sum over t of dy, of dy [t, m] and x [t, n].
void weight_gradient_into(const LinearGrads& grads, const Tensor& dy, const Tensor& x);

/// a [rows, k] b [groups, k, n] -> [rows, n]: the rows of group g meet b[g].
Tensor grouped_matmul(const Tensor& a, const Tensor& b, const Groups& groups, const MatmulArgs& how = {});
/// With a transposed: a [rows, m] b [rows, n] -> out [groups, m, n], the weight gradient.
void grouped_matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                         const MatmulArgs& how = {});

}  // namespace weft::ops
