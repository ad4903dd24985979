// Devices of exact mode: products of every form, and bits that do not show how rows and columns are shared
// out.
#include "tests/backend/conformance_products.h"
#include "weft/tensor/host.h"

namespace weft::conformance {
namespace {

/// f(sizes, type, how each operand is read)
void each_form(const std::function<void(const Sizes&, Dtype, const MatmulArgs&)>& f) {
  // Of one block, of several with rests, of rows that are whole vectors, and of others.
  for (const Sizes& s :
       {Sizes{1, 17, 5}, {33, 1, 64}, {7, 50, 129}, {5, 3, 300}, {136, 144, 80}, {133, 150, 72}})
    for (const Dtype dtype : floats)
      for (const Read a : {Read::as_is, Read::transposed})
        for (const Read b : {Read::as_is, Read::transposed}) {
          SCOPED_TRACE(told(s, dtype));
          f(s, dtype, {.a = a, .b = b});
        }
}

TEST_P(InExactMode, multiplies_all_forms_of_matrices) {
  each_form([&](const Sizes& s, Dtype dtype, const MatmulArgs& how) {
    same(
        [&](Desk& desk) {
          const Tensor left = desk.normal(held(s.m, s.k, how.a), dtype);
          const Tensor right = desk.normal(held(s.k, s.n, how.b), dtype);
          const Tensor out = desk.blank({s.m, s.n}, dtype), sum = desk.normal({s.m, s.n});
          MatmulArgs with = how;
          with.bias = desk.normal({s.n}, dtype);
          desk.kernels().matmul(out, left, right, with);
          with.bias = {};
          with.accumulate = true;
          desk.kernels().matmul(sum, left, right, with);
          desk.result("out", out, close(dtype, s.k));
          desk.result("sum", sum, close(Dtype::f32, s.k));
        },
        Lay::gaps);
  });
}

TEST_P(InExactMode, multiplies_batches_and_slabs) {
  for (const Dtype dtype : floats)
    for (const Read a : {Read::as_is, Read::transposed})
      for (const Read b : {Read::as_is, Read::transposed})
        same(
            [&](Desk& desk) {
              const Tensor left = desk.normal(held(3, 10, 24, a), dtype);
              const Tensor right = desk.normal(held(3, 24, 18, b), dtype);
              const Tensor out = desk.blank({3, 10, 18}, dtype), sum = desk.normal({3, 10, 18});
              desk.kernels().matmul(out, left, right, {.a = a, .b = b});
              desk.kernels().matmul(sum, left, right, {.a = a, .b = b, .accumulate = true, .slabs = 4});
              desk.result("out", out, close(dtype, 24));
              desk.result("sum", sum, close(Dtype::f32, 24));
            },
            Lay::swapped);
}

// An activation that follows rounds what the product rounded, and a bias's gradient is added by itself.
TEST_P(InExactMode, multiplies_and_activates_one_after_the_other) {
  const auto device = GetParam().open(1);
  for (const Dtype dtype : floats) {
    SCOPED_TRACE(name(dtype));
    Desk desk(*device, Lay::contiguous);
    Kernels& kernels = desk.kernels();
    EXPECT_FALSE(kernels.activates_products(dtype, Activation::gelu));
    const Tensor a = desk.normal({25, 64}, dtype), b = desk.normal({64, 56}, dtype),
                 y = desk.blank({25, 56}, dtype), before = desk.blank({25, 56}, dtype),
                 y2 = desk.blank({25, 56}, dtype), before2 = desk.blank({25, 56}, dtype);
    kernels.matmul_activated(y, before, a, b, {{}, Activation::gelu});
    kernels.matmul(before2, a, b, {});
    kernels.activation(y2, before2, {}, Activation::gelu);
    EXPECT_EQ(numbers(before), numbers(before2));
    EXPECT_EQ(numbers(y), numbers(y2));
    kernels.matmul_derived(y, before, a, b, {{}, Activation::gelu});
    kernels.activation_backward(y2, before2, before2, {}, Activation::gelu);
    EXPECT_EQ(numbers(y), numbers(y2));
    const Tensor dw = desk.holding({64, 56}, Dtype::f32, std::vector<double>(64 * 56, 0)),
                 db = desk.holding({64}, Dtype::f32, std::vector<double>(64, 0)), dw2 = desk.blank({64, 56}),
                 db2 = desk.holding({64}, Dtype::f32, std::vector<double>(64, 0));
    kernels.weight_gradient({{dw}, db}, a, y);
    kernels.matmul(dw2, a, y, {.a = Read::transposed});
    kernels.sum_rows(db2, a);
    EXPECT_EQ(numbers(dw), numbers(dw2));
    EXPECT_EQ(numbers(db), numbers(db2));
  }
}

/// The rows and columns of x that a part has, as it may lie elsewhere.
Tensor lines(const Tensor& x, int dim, std::int64_t first, std::int64_t count, Read read) {
  return x.slice(read == Read::as_is ? dim : 1 - dim, first, count);
}

// Parts that begin anywhere, so that their elements lie in other blocks, warps, fragments and vectors.
TEST_P(InExactMode, parts_of_products_have_the_bits_of_the_whole) {
  const auto device = GetParam().open(1);
  constexpr std::int64_t m = 200, n = 184, first_row = 45, first_column = 67;
  for (const std::int64_t k : {8, 96, 200})
    for (const Dtype dtype : floats)
      for (const Read a : {Read::as_is, Read::transposed})
        for (const Read b : {Read::as_is, Read::transposed})
          for (const int slabs : {1, 8}) {
            SCOPED_TRACE(text(told({m, n, k}, dtype), ", slabs ", slabs));
            Desk desk(*device, Lay::contiguous);
            const Tensor left = desk.normal(held(m, k, a), dtype), right = desk.normal(held(k, n, b), dtype);
            const Tensor whole = desk.blank({m, n}), part = desk.blank({m - first_row, n - first_column});
            const MatmulArgs how{.a = a, .b = b, .slabs = slabs};
            desk.kernels().matmul(whole, left, right, how);
            desk.kernels().matmul(part, lines(left, 0, first_row, m - first_row, a),
                                  lines(right, 1, first_column, n - first_column, b), how);
            EXPECT_EQ(
                numbers(part),
                numbers(whole.slice(0, first_row, m - first_row).slice(1, first_column, n - first_column)));
          }
}

// Ranks share experts' columns and tokens out.
TEST_P(InExactMode, parts_of_groups_have_the_bits_of_the_whole) {
  const auto device = GetParam().open(1);
  const std::vector<std::int64_t> offsets{0, 130, 130, 131, 170}, fewer{0, 85, 85, 85, 120};
  for (const Dtype dtype : floats)
    for (const Read b : {Read::as_is, Read::transposed}) {
      SCOPED_TRACE(name(dtype));
      Desk desk(*device, Lay::contiguous);
      const Tensor x = desk.normal({170, 72}, dtype), out = desk.blank({170, 48});
      const Tensor w = desk.normal(held(4, 72, 48, b), dtype);
      desk.kernels().grouped_matmul(out, x, w, unseen(desk, offsets, dtype), {.b = b});
      const Tensor some = desk.blank({120, 72}, dtype), part = desk.blank({120, 31});
      desk.kernels().copy(some.slice(0, 0, 85), x.slice(0, 45, 85));
      desk.kernels().copy(some.slice(0, 85, 35), x.slice(0, 135, 35));
      desk.kernels().grouped_matmul(part, some, w.slice(b == Read::as_is ? 2 : 1, 17, 31), {fewer}, {.b = b});
      const Tensor columns = out.slice(1, 17, 31);
      EXPECT_EQ(numbers(part.slice(0, 0, 85)), numbers(columns.slice(0, 45, 85)));
      EXPECT_EQ(numbers(part.slice(0, 85, 35)), numbers(columns.slice(0, 135, 35)));
    }
}

// Hosts that know of groups may ask for a product each.
TEST_P(InExactMode, gradients_of_groups_have_the_bits_of_products_by_themselves) {
  const auto device = GetParam().open(1);
  const std::vector<std::int64_t> offsets{0, 75, 75, 78};
  for (const Dtype dtype : floats) {
    SCOPED_TRACE(name(dtype));
    Desk desk(*device, Lay::contiguous);
    const Tensor dy = desk.normal({78, 136}, dtype), x = desk.normal({78, 40}, dtype),
                 out = desk.blank({3, 136, 40});
    desk.kernels().grouped_matmul(out, dy, x, unseen(desk, offsets, dtype), {.a = Read::transposed});
    for (const int g : {0, 2}) {
      const std::int64_t first = offsets[std::size_t(g)], count = offsets[std::size_t(g) + 1] - first;
      const Tensor alone = desk.blank({136, 40});
      desk.kernels().matmul(alone, dy.slice(0, first, count), x.slice(0, first, count),
                            {.a = Read::transposed});
      EXPECT_EQ(numbers(alone), numbers(out.at(0, g))) << "group " << g;
    }
  }
}

/// A rank that does not know its groups adds as those do that know them, and share columns out.
void expect_sums_by_themselves(Desk& desk, Dtype dtype) {
  SCOPED_TRACE(name(dtype));
  const std::vector<std::int64_t> offsets{0, 530, 530, 533, 550};
  const Tensor x = desk.normal({550, 40}, dtype), one = desk.holding({1}, dtype, {1}),
               out = desk.blank({4, 1, 40});
  desk.kernels().grouped_matmul(out, one.row_of(550, 0), x, unseen(desk, offsets, dtype),
                                {.a = Read::transposed});
  for (std::int64_t g = 0; g < 4; ++g) {
    const std::int64_t first = offsets[std::size_t(g)], count = offsets[std::size_t(g) + 1] - first;
    const Tensor alone = desk.holding({31}, Dtype::f32, std::vector<double>(31, 0));
    desk.kernels().sum_rows(alone, x.slice(0, first, count).slice(1, 7, 31));
    EXPECT_EQ(numbers(alone), numbers(out.at(0, g).at(0, 0).slice(0, 7, 31))) << "group " << g;
  }
}

TEST_P(InExactMode, sums_of_some_columns_and_of_groups_have_the_bits_of_all) {
  const auto device = GetParam().open(1);
  Desk desk(*device, Lay::contiguous);
  const Tensor x = desk.normal({600, 2048});
  const Tensor all = desk.holding({2048}, Dtype::f32, std::vector<double>(2048, 0)),
               some = desk.holding({500}, Dtype::f32, std::vector<double>(500, 0));
  desk.kernels().sum_rows(all, x);
  desk.kernels().sum_rows(some, x.slice(1, 700, 500));
  EXPECT_EQ(numbers(some), numbers(all.slice(0, 700, 500)));
  for (const Dtype dtype : floats)  // a processor's ranks know their groups, and sum rows
    if (desk.kernels().multiplies_unseen_groups(dtype)) expect_sums_by_themselves(desk, dtype);
}

}  // namespace
}  // namespace weft::conformance
