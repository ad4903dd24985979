// Filling, copying, adding, scaling, dropping: one pass over elements each. Types may be mixed.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

Tensor zeros(Device& device, const Shape& shape, Dtype dtype = Dtype::f32, Use use = Use::activations);
void fill(const Tensor& out, double value);

/// out = in, between any two types.
void copy_into(const Tensor& out, const Tensor& in);
/// A copy of another type; x itself where it has that type already.
Tensor cast(const Tensor& x, Dtype dtype, Use use = Use::activations);
/// x itself where its elements fill their memory in order, else a copy that does.
Tensor contiguous(const Tensor& x, Use use = Use::activations);

/// Shapes are equal.
void add_into(const Tensor& out, const Tensor& a, const Tensor& b);
/// out += alpha x
void add_scaled_into(const Tensor& out, const Tensor& x, float alpha = 1);
void scale_in_place(const Tensor& x, float alpha);
Tensor multiply(const Tensor& a, const Tensor& b);
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b);

/// x [.., h] += bias [h]
void add_bias_in_place(const Tensor& x, const Tensor& bias);
/// dbias [h] += the sum over all rows of dy [.., h]; dbias is f32.
void sum_rows_into(const Tensor& dbias, const Tensor& dy);

/// x [s, b, h] -> y [s, b, h]. Its own derivative.
Tensor dropout(const Tensor& x, const DropoutArgs& how);
void dropout_into(const Tensor& y, const Tensor& x, const DropoutArgs& how);
/// residual + dropout(x + bias); all [s, b, h], bias [h] or empty
void bias_dropout_add_into(const Tensor& out, const Tensor& x, const Tensor& bias, const Tensor& residual,
                           const DropoutArgs& how);

}  // namespace weft::ops
