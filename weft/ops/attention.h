// Attention that never stores the matrix of scores, its derivative, and the merging of parts.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// Of o and its gradient: queries' rows, as wide as a value.
Shape attended_shape(const Attended& in);

/// q [sq, b, g, r, d], k [sk, b, g, d], v [sk, b, g, d'] -> o [sq, b, g, r, d'] of q's type, lse f32 [b, g r,
/// sq]
AttentionOut attention(const Attended& in, const AttentionArgs& how);
void attention_into(const AttentionOut& out, const Attended& in, const AttentionArgs& how);

/// dout [sq, b, g, r, d'] -> dq, dk and dv, and dbias, where it is given.
void attention_backward_into(const AttentionGrads& grads, const Tensor& dout, const AttentionOut& out,
                             const Attended& in, const AttentionArgs& how);

/// into becomes the attention over the keys of both parts; into.o may be f32 to round once.
void merge_attention(const AttentionOut& into, const AttentionOut& part);

}  // namespace weft::ops
