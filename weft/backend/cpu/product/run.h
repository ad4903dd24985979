// Our own matrix product: f32, bf16 and f16 operands, sums in f32, bits that depend on k, slabs and types
// only.
#pragma once

#include "weft/backend/cpu/product/loops.h"
#include "weft/backend/cpu/product/plan.h"

namespace weft::product {

/// out[m, n] (+)= a[m, k] b[k, n] (+ bias[n]). On a device that only counts, the same with nowhere to point.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  Matrix a{}, b{};
  bool a_turned = false, b_turned = false;  // stored transposed
  fast::Out out{};
  std::int64_t out_row = 0;
  bool accumulate = false;
  bool has_bias = false;
  fast::In bias{};
  int slabs = 1;

  Form form() const;
};

/// workspace: plan(problem.form(), threads).bytes(), aligned to 64.
void run(const Problem& problem, const Loops& loops, int threads, float* workspace);

}  // namespace weft::product
