// Products of which every element is one chain of fused sums over k, in ascending order, whatever m and n.
#pragma once

#include "weft/backend/cuda/queue.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

/// As Kernels::matmul has it, without slabs: of f32, or in double of operands of any two types.
void multiply_in_chains(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                        const MatmulArgs& how);

struct ChainsByGroup {
  const Tensor& offsets;  // i64 [groups + 1]
  const MatmulArgs& product;
};
/// The same of f32 by groups, as Kernels::grouped_matmul has it: all of them in one launch.
void multiply_groups_in_chains(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                               const ChainsByGroup& how);

}  // namespace weft::cuda
