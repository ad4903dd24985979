// Products in double, for the few that are asked for: what routers compare experts by.
#pragma once

#include "weft/tensor/args.h"

namespace weft::fast {

/// Whether a product is one in double: its result or an operand is f64.
bool in_doubles(const Tensor& out, const Tensor& a, const Tensor& b);

/// out [m, n] f64 or f32 (+)= a [m, k] b [k, n] (+ bias [n]), operands of any types, each widened where it
/// lies. Every element is one chain over k, in ascending order, whatever m, n and the number of threads.
void product_in_doubles(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                        int threads);

}  // namespace weft::fast
