// Products of eight bits: rounding to them, multiplying them, and what their scales follow from.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

enum class Turned : std::uint8_t { no, yes, both };

/// x [r, c] times scale f32 [1] as f8e4m3 or f8e5m2: [r', c'], turned [c', r'], or both, where r' and c' are
/// r and c rounded up to f8_unit, with zeros. met f32 [1], where given, becomes the greatest finite |x| if
/// that is more.
Quantized quantize(const Tensor& x, Dtype dtype, Turned turned, const Tensor& scale, const Tensor& met = {});
/// The same by blocks, each with a scale that follows from its greatest finite |x|. Sizes are rounded up to
/// f8_unit_of(blocks).
Quantized quantize_blocks(const Tensor& x, Dtype dtype, Turned turned, F8Blocks blocks);
/// met becomes the greatest finite |x| if that is more.
void meet(const Tensor& met, const Tensor& x);
/// out [m, n] (+)= a b^T times both inverses (+ bias), of what quantize() made of a [m, k] and b [n, k], or
/// both quantize_blocks(): one or two in lines of 128 and one in squares at most, or two in lines of 32
void scaled_matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs& how);
/// rows f32 [.., 2 + remembered] of ScaleRow
void renew_scales(const Tensor& rows, const ScaleArgs& how);

}  // namespace weft::ops
