// Products whose bits do not show how their rows and columns are shared out: exact mode's.
#pragma once

#include "weft/backend/cuda/queue.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

/// As Kernels::matmul has it, without slabs.
void multiply_in_fixed_order(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                             const MatmulArgs& how);

}  // namespace weft::cuda
