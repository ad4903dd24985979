// Products in groups at shapes that make every loop of their kernels go round twice, with several blocks: by
// warps, by warpgroups, whose blocks are wider and whose panels have four places, and in f32 by chains.
#include <gtest/gtest.h>

#include "tests/backend/conformance_products.h"

namespace weft::conformance {
namespace {

/// Rows by group where a product has blocks of 128 and panels of 64: groups of no block, of one and of two,
/// and more of them than a warp counts at once.
std::vector<std::int64_t> many_groups() {
  std::vector<std::int64_t> offsets{0, 150, 150, 153};
  while (offsets.size() < 38) offsets.push_back(offsets.back() + std::ssize(offsets) % 2);
  offsets.push_back(offsets.back() + 128);
  return offsets;
}

/// Rows that lie further apart than they are long, and are whole vectors all the same.
Tensor spaced(const Tensor& wider) { return wider.slice(-1, 0, wider.dim(-1) - 8); }

struct Weights {
  std::int64_t k, n;
  Read read = Read::as_is;
};

void multiply_groups(Desk& desk, const Weights& of, Dtype dtype) {
  const std::vector<std::int64_t> offsets = many_groups();
  const std::int64_t rows = offsets.back(), groups = std::ssize(offsets) - 1, k = of.k, n = of.n;
  const Tensor x = spaced(desk.normal({rows, k + 8}, dtype));
  const Tensor w =
      spaced(desk.normal(of.read == Read::as_is ? Shape{groups, k, n + 8} : Shape{groups, n, k + 8}, dtype));
  const Tensor out = spaced(desk.blank({rows, n + 8}, dtype)), sum = desk.normal({rows, n});
  const Groups in_groups = unseen(desk, offsets, dtype);
  desk.kernels().grouped_matmul(out, x, w, in_groups, {.b = of.read});
  desk.result("out", out, close(dtype, k));
  const Tensor bias = desk.normal({groups, n}, dtype);
  desk.kernels().grouped_matmul(sum, x, w, in_groups, {.b = of.read, .accumulate = true, .bias = bias});
  desk.result("sum", sum, close(Dtype::f32, k));
}

/// A result whose rows are no whole vectors, and operands that are none: the last take another way.
void multiply_groups_of_any_width(Desk& desk, std::int64_t k, Dtype dtype) {
  const std::vector<std::int64_t> offsets{0, 3, 3, 140};
  const Tensor x = desk.normal({140, k}, dtype), w = desk.normal({3, 13, k}, dtype);
  const Tensor out = desk.blank({140, 13}, dtype);
  desk.kernels().grouped_matmul(out, x, w, unseen(desk, offsets, dtype),
                                {.b = Read::transposed, .bias = desk.normal({3, 13})});
  desk.result("out", out, close(dtype, k));
}

/// Groups that end before the rows do, as where experts have no room for all: the rest becomes zeros, or
/// stays. An oracle is told of them, and leaves the rest.
void multiply_what_is_kept(Desk& desk, std::int64_t n, Dtype dtype) {
  const std::vector<std::int64_t> offsets{0, 3, 3, 70};
  const std::int64_t rows = 330, kept = offsets.back(), k = 24;
  const Groups groups = unseen(desk, offsets, dtype);
  const Tensor x = desk.normal({rows, k}, dtype), w = desk.normal({3, k, n}, dtype),
               out = spaced(desk.blank({rows, n + 8}, dtype)), sum = desk.normal({rows, n});
  if (!groups.unseen) desk.kernels().fill(out.slice(0, kept, rows - kept), 0);
  desk.kernels().grouped_matmul(out, x, w, groups, {.bias = desk.normal({3, n}, dtype)});
  desk.result("out", out, close(dtype, k));
  desk.kernels().grouped_matmul(sum, x, w, groups, {.accumulate = true});
  desk.result("sum", sum, close(Dtype::f32, k));
}

struct Gradient {
  std::vector<std::int64_t> offsets;
  std::int64_t m, n;
  bool accumulate = false;
};

void sum_groups(Desk& desk, const Gradient& of, Dtype dtype) {
  const std::int64_t rows = of.offsets.back(), groups = std::ssize(of.offsets) - 1;
  const Tensor dy = spaced(desk.normal({rows, of.m + 8}, dtype)),
               x = spaced(desk.normal({rows, of.n + 8}, dtype));
  const Shape wider{groups, of.m, of.n + 8};
  const Tensor out = spaced(of.accumulate ? desk.normal(wider) : desk.blank(wider));
  desk.kernels().grouped_matmul(out, dy, x, unseen(desk, of.offsets, dtype),
                                {.a = Read::transposed, .accumulate = of.accumulate});
  desk.result("out", out, close(Dtype::f32, rows));
}

/// What all rows are multiplied by is one number, so these are sums of columns; rows behind the last group
/// are nobody's.
void sum_columns_of_groups(Desk& desk, const Gradient& of, Dtype dtype) {
  const std::int64_t rows = of.offsets.back() + 3, groups = std::ssize(of.offsets) - 1;
  const Tensor x = spaced(desk.normal({rows, of.n + 8}, dtype)), factor = desk.normal({1}, dtype);
  const Shape wider{groups, 1, of.n + 8};
  const Tensor out = spaced(of.accumulate ? desk.normal(wider) : desk.blank(wider));
  desk.kernels().grouped_matmul(out, factor.row_of(rows, 0), x, unseen(desk, of.offsets, dtype),
                                {.a = Read::transposed, .accumulate = of.accumulate});
  desk.result("out", out, close(Dtype::f32, rows));
}

TEST_P(Conformance, multiplies_groups_by_panels) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
    for (const Read read : {Read::as_is, Read::transposed})
      same([&](Desk& desk) { multiply_groups(desk, {72, 136, read}, dtype); });
}
TEST_P(Warpgroups, multiply_groups) {
  same([&](Desk& desk) { multiply_groups(desk, {328, 136}, Dtype::bf16); });
  same([&](Desk& desk) { multiply_groups(desk, {72, 264, Read::transposed}, Dtype::bf16); });
  same([&](Desk& desk) { multiply_groups(desk, {72, 264}, Dtype::f16); });
}

TEST_P(Conformance, multiplies_groups_by_panels_and_clears_what_is_behind) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
    same([&](Desk& desk) { multiply_what_is_kept(desk, 136, dtype); });
}
TEST_P(Warpgroups, multiply_groups_and_clear_what_is_behind) {
  same([&](Desk& desk) { multiply_what_is_kept(desk, 264, Dtype::bf16); });
}

TEST_P(Conformance, multiplies_groups_of_any_width) {
  for (const std::int64_t k : {24, 21})
    same([&](Desk& desk) { multiply_groups_of_any_width(desk, k, Dtype::bf16); });
}
TEST_P(Warpgroups, multiply_groups_of_any_width) {
  for (const std::int64_t k : {24, 381})
    same([&](Desk& desk) { multiply_groups_of_any_width(desk, k, Dtype::bf16); });
}

TEST_P(Conformance, multiplies_groups_in_chains) {
  same([&](Desk& desk) { multiply_groups(desk, {37, 136}, Dtype::f32); });
  same([&](Desk& desk) { multiply_groups_of_any_width(desk, 21, Dtype::f32); });
}
TEST_P(Conformance, multiplies_groups_in_chains_and_clears_what_is_behind) {
  same([&](Desk& desk) { multiply_what_is_kept(desk, 136, Dtype::f32); });
}
TEST_P(Conformance, gives_weight_gradients_in_chains) {
  for (const bool accumulate : {false, true})
    same([&](Desk& desk) { sum_groups(desk, {{0, 40, 40, 43}, 136, 144, accumulate}, Dtype::f32); });
}

// Of two blocks of columns, and more rows than all slabs have at once; and of columns that are no whole
// vectors.
TEST_P(Conformance, sums_columns_by_groups) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    same([&](Desk& desk) {
      sum_columns_of_groups(desk, {{0, 525, 525, 528, 602}, 1, 264, dtype == Dtype::bf16}, dtype);
    });
  same([&](Desk& desk) { sum_columns_of_groups(desk, {{0, 0, 12}, 1, 13, true}, Dtype::bf16); });
}

TEST_P(Conformance, gives_weight_gradients_by_panels) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
    for (const bool accumulate : {false, true})
      same([&](Desk& desk) { sum_groups(desk, {{0, 150, 150, 153, 217}, 136, 144, accumulate}, dtype); });
}
TEST_P(Warpgroups, give_weight_gradients) {
  for (const bool accumulate : {false, true})
    same([&](Desk& desk) { sum_groups(desk, {{0, 390, 390, 393}, 136, 264, accumulate}, Dtype::bf16); });
  same([&](Desk& desk) { sum_groups(desk, {{0, 70}, 72, 80}, Dtype::f16); });
}

}  // namespace
}  // namespace weft::conformance
