// What a product in groups is made by: sums of columns, or a product a group, where the host knows where they
// begin.
#pragma once

#include "weft/tensor/args.h"

namespace weft::cuda {

/// What Kernels::grouped_matmul takes.
struct InGroups {
  const Tensor &out, &a, &b;
  const Groups& groups;
  const MatmulArgs& how;
};

/// Whether such a product is sums of columns: all rows of a are one number.
inline bool sums_columns(const Tensor& a, const MatmulArgs& how) {
  return how.a == Read::transposed && a.dim(1) == 1 && a.stride(0) == 0;
}

/// multiply(out, a, b, how) for each group, as Kernels::matmul takes them.
template <class Multiply>
void a_call_a_group(const InGroups& all, const Multiply& multiply) {
  const auto& [out, a, b, groups, how] = all;
  const bool gradient = how.a == Read::transposed;
  const auto offsets = groups.offsets;
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    const std::int64_t first = offsets[g], count = offsets[g + 1] - first;
    MatmulArgs one = how;
    if (how.bias) one.bias = how.bias.at(0, std::int64_t(g));
    if (gradient)
      multiply(out.at(0, std::int64_t(g)), a.slice(0, first, count), b.slice(0, first, count), one);
    else
      multiply(out.slice(0, first, count), a.slice(0, first, count), b.at(0, std::int64_t(g)), one);
  }
}

}  // namespace weft::cuda
