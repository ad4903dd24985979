// Sums of columns by groups of rows whose bounds lie on the GPU, in the order that sum_rows has for each
// group by itself.
#pragma once

#include "weft/backend/cuda/queue.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

struct SumsByGroup {
  const Tensor& x;        // [n, h]
  const Tensor& factor;   // [n, 1], every one the same
  const Tensor& offsets;  // i64 [groups + 1]
  bool accumulate;
};
/// out [groups, 1, h] (+)= factor times the sum over a group's rows of x; zeros of a group without rows,
/// unless accumulating
void sum_groups(Queue& queue, const Tensor& out, const SumsByGroup& of);

}  // namespace weft::cuda
