// Products of eight bits on a processor, which has no instruction for them: bf16 holds every code, so their
// sums are those of a product of bf16 in f32. It holds them under powers of two as well, which is what scales
// of blocks are: there operands are what codes stand for, and nothing is left to be multiplied by.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::product {

/// What such a product is done with: its operands as bf16 [m, k] and [n, k], and its sums f32 [m, n].
struct InBf16 {
  Tensor a, b, sums;
};
/// Memory for it, with whatever is in it.
InBf16 in_bf16(const Tensor& out, const Tensor& a);
/// How sums are asked for.
inline MatmulArgs sums_in_bf16() { return {.b = Read::transposed}; }
void widen(const InBf16& into, const Tensor& a, const Tensor& b, const ScaledArgs& how, int threads);
/// out (+)= sums times both inverses, where these are of whole matrices (+ bias)
void finish(const Tensor& out, const Tensor& sums, const ScaledArgs& how, int threads);

}  // namespace weft::product
