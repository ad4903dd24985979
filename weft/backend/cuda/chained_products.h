// Products of which every element is one chain of fused sums over k, in ascending order, whatever m and n.
#pragma once

#include "weft/backend/cuda/queue.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

/// As Kernels::matmul has it, without slabs: of f32, or in double of operands of any two types.
void multiply_in_chains(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                        const MatmulArgs& how);

}  // namespace weft::cuda
