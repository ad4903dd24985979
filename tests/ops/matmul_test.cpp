// Products against sums written out, through every form of operand.
#include <rapidcheck.h>

#include "tests/ops/fixture.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/tensor/meter.h"

namespace weft {
namespace {

using Matmul = Ops;

double at(const Tensor& matrix, std::int64_t i, std::int64_t j) {
  return number(matrix.at(0, i).slice(0, j, 1));
}

/// a [m, k] b [k, n], one sum at a time.
std::vector<double> written_out(const Tensor& a, const Tensor& b) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < a.dim(0); ++i)
    for (std::int64_t j = 0; j < b.dim(1); ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.dim(1); ++k) sum += at(a, i, k) * at(b, k, j);
      out.push_back(sum);
    }
  return out;
}

TEST_F(Matmul, multiplies_matrices_of_any_shape_type_and_form) {
  EXPECT_TRUE(rc::check([&](bool turn_a, bool turn_b, bool view_a, bool view_b) {
    const auto m = *rc::gen::inRange<std::int64_t>(0, 9);
    const auto n = *rc::gen::inRange<std::int64_t>(0, 9);
    const auto k = *rc::gen::inRange<std::int64_t>(0, 9);
    const Dtype dtype = *rc::gen::element(Dtype::f32, Dtype::bf16, Dtype::f16);
    // Four ways to hand over one matrix: as it is or read transposed, from memory in order or through a view.
    const auto operand = [&](std::int64_t rows, std::int64_t columns, bool turn, bool view) {
      const Tensor held = turn != view ? random({columns, rows}, dtype) : random({rows, columns}, dtype);
      return view ? held.permute({1, 0}) : held;
    };
    const Tensor a = operand(m, k, turn_a, view_a);
    const Tensor b = operand(k, n, turn_b, view_b);
    const auto read = [](bool turn) { return turn ? Read::transposed : Read::as_is; };
    const Tensor out = ops::matmul(a, b, {.a = read(turn_a), .b = read(turn_b)});
    RC_ASSERT(out.shape() == (Shape{m, n}));
    const std::vector<double> expected =
        written_out(turn_a ? a.permute({1, 0}) : a, turn_b ? b.permute({1, 0}) : b);
    RC_ASSERT(difference(numbers(out), expected, {rounding(dtype) * 2, 1e-6}) == "");
  }));
}

TEST_F(Matmul, accumulates_into_f32_and_adds_a_bias) {
  const Tensor a = random({3, 5}, Dtype::bf16);
  const Tensor b = random({5, 4}, Dtype::bf16);
  const Tensor out = random({3, 4});
  const Tensor bias = random({4});
  std::vector<double> expected = written_out(a, b);
  const std::vector<double> before = numbers(out);
  const std::vector<double> more = numbers(bias);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i] + more[i % 4];
  ops::matmul_into(out, a, b, {.accumulate = true, .bias = bias});
  EXPECT_EQ(difference(numbers(out), expected, f32_near), "");
}

TEST_F(Matmul, merges_leading_dimensions) {
  const Tensor a = random({2, 3, 5});
  const Tensor b = random({4, 5});
  const Tensor out = ops::matmul(a, b, {.b = Read::transposed});
  EXPECT_EQ(out.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(difference(numbers(out), written_out(a.rows(), b.permute({1, 0})), f32_near), "");
}

TEST_F(Matmul, multiplies_batches_one_by_one) {
  const Tensor a = random({3, 2, 5});
  const Tensor b = random({3, 4, 5}).permute({0, 2, 1});
  const Tensor out = ops::matmul(a, b);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(difference(numbers(out.at(0, i)), written_out(a.at(0, i), b.at(0, i)), f32_near), "");
}

TEST_F(Matmul, of_no_inner_elements_is_zero_or_the_bias) {
  const Tensor a = random({2, 0});
  const Tensor b = random({0, 3});
  EXPECT_EQ(numbers(ops::matmul(a, b)), std::vector<double>(6, 0));
  const Tensor out = holding({2, 3}, {1, 2, 3, 4, 5, 6});
  ops::matmul_into(out, a, b, {.accumulate = true, .bias = holding({3}, {10, 20, 30})});
  EXPECT_EQ(numbers(out), (std::vector<double>{11, 22, 33, 14, 25, 36}));
}

TEST_F(Matmul, adds_slabs_in_f32_as_a_balanced_tree) {
  // 2^24 + 1 is no float: the order of additions shows.
  const double big = 0x1p24;
  const Tensor a = holding({1, 4}, {big, 1, 1, 1});
  const Tensor ones = holding({4, 1}, {1, 1, 1, 1});
  EXPECT_EQ(number(ops::matmul(a, ones, {.slabs = 4})), big + 2);  // (big + 1) + (1 + 1)
  EXPECT_EQ(number(ops::matmul(a, ones)), big + 4);                // in double, rounded once
}

TEST_F(Matmul, multiplies_groups_of_rows_with_their_own_matrix) {
  const std::vector<std::int64_t> offsets{0, 2, 2, 5};
  const Tensor x = random({5, 3});
  const Tensor w = random({3, 4, 3});
  const Tensor bias = zeros({3, 4});
  const Tensor y = ops::grouped_matmul(x, w, {offsets}, {.b = Read::transposed, .bias = bias});
  EXPECT_EQ(difference(numbers(y.slice(0, 0, 2)), written_out(x.slice(0, 0, 2), w.at(0, 0).permute({1, 0})),
                       f32_near),
            "");
  EXPECT_EQ(difference(numbers(y.slice(0, 2, 3)), written_out(x.slice(0, 2, 3), w.at(0, 2).permute({1, 0})),
                       f32_near),
            "");
  const Tensor dw = zeros({3, 4, 3});
  ops::grouped_matmul_into(dw, y, x, {offsets}, {.a = Read::transposed, .accumulate = true});
  EXPECT_EQ(difference(numbers(dw.at(0, 2)), written_out(y.slice(0, 2, 3).permute({1, 0}), x.slice(0, 2, 3)),
                       f32_near),
            "");
  EXPECT_EQ(numbers(dw.at(0, 1)), std::vector<double>(12, 0));
}

TEST_F(Matmul, counts_its_work_from_shapes) {
  device().work() = {};
  (void)ops::matmul(random({2, 3, 5}, Dtype::bf16), random({5, 4}, Dtype::bf16));
  EXPECT_EQ(device().work().by[std::size_t(Work::product)], (Tally{1, 2 * 6 * 5 * 4, 2 * (30 + 20 + 24)}));
}

TEST_F(Matmul, says_which_shapes_do_not_fit) {
  const auto said = [&](const Shape& a, const Shape& b, MatmulArgs how = {}) {
    return refused([&] { (void)ops::matmul(random(a), random(b), how); });
  };
  EXPECT_EQ(said({2, 3}, {4, 5}), "matmul: [2, 3] by [4, 5] does not give [2, 5]");
  EXPECT_EQ(said({2, 3}, {4, 5}, {.b = Read::transposed}), "matmul: [2, 3] by [4, 5]^T does not give [2, 4]");
  EXPECT_EQ(said({3}, {3, 2}), "matmul: a [3] has 1 dimensions, not 2 to 6");
  EXPECT_EQ(said({2, 3, 4}, {5, 4, 2}), "matmul: [2, 3, 4] by [5, 4, 2] does not give [2, 3, 2]");
  EXPECT_EQ(said({2, 6}, {6, 2}, {.slabs = 4}), "matmul: k 6 cannot be cut into 4 equal slabs");
  EXPECT_EQ(said({2, 6}, {6, 2}, {.bias = random({3})}), "matmul: bias is [3], not [2]");
  EXPECT_EQ(refused([&] {
              ops::matmul_into(random({2, 2}), random({2, 3}), random({1, 3, 2}));
            }),
            "matmul: [2, 3] by [1, 3, 2] into [2, 2] mixes matrices and batches");
}

// b^T a, wider than either: what is far below a float's last bit of the sum is kept.
TEST_F(Matmul, adds_in_double_where_the_result_or_a_matrix_is) {
  const Tensor a = holding({1, 3}, {1, 0x1p-30, -1}), b = holding({3, 1}, {1, 1, 1}, Dtype::bf16);
  const Tensor out = zeros({1, 1}, Dtype::f64), narrow = holding({1, 1}, {1});
  ops::matmul_into(out, a, b);
  EXPECT_EQ(numbers(out), std::vector<double>{0x1p-30});
  ops::matmul_into(narrow, ops::cast(a, Dtype::f64), b, {.accumulate = true});
  EXPECT_EQ(numbers(narrow), std::vector<double>{1});
  const auto said = [&](const Tensor& to, const Tensor& left, const MatmulArgs& how) {
    return refused([&] { ops::matmul_into(to, left, b, how); });
  };
  EXPECT_EQ(said(out, integers({1, 3}, {1, 1, 1}), {}), "matmul: a is i32, not f32, bf16 or f16");
  EXPECT_EQ(said(out, a, {.slabs = 3}), "matmul: 3 slabs, and a sum in double has none");
  EXPECT_EQ(said(zeros({1, 1}, Dtype::bf16), ops::cast(a, Dtype::f64), {}),
            "matmul: out is bf16, and a sum in double is stored as f64 or f32");
}

TEST_F(Matmul, says_which_operands_it_cannot_read) {
  const Tensor a = random({2, 3});
  EXPECT_EQ(refused([&] { (void)ops::matmul({}, a); }), "matmul: the first operand has no memory");
  EXPECT_EQ(refused([&] { (void)ops::matmul(a, {}); }), "matmul: b has no memory");
  EXPECT_EQ(refused([&] {
              (void)ops::matmul(a, random({3, 2}, Dtype::bf16));
            }),
            "matmul: a is f32 and b is bf16");
  EXPECT_EQ(refused([&] {
              (void)ops::matmul(zeros({2, 3}, Dtype::i32), a);
            }),
            "matmul: a is i32, not f32, bf16 or f16");
  EXPECT_EQ(refused([&] {
              ops::matmul_into(zeros({2, 2}, Dtype::f16), a, random({3, 2}));
            }),
            "matmul: out is f16, neither f32 nor the operands' f32");
  const Tensor scattered = random({2, 3, 2}).at(2, 0);
  EXPECT_EQ(refused([&] {
              (void)ops::matmul(scattered, random({3, 2}));
            }),
            "matmul: a [2, 3] with strides [6, 2] has gaps in its last dimension; copy it with "
            "ops::contiguous first");
  const auto other = open_device("cpu:reference");
  EXPECT_EQ(refused([&] {
              (void)ops::matmul(a, empty(*other, {3, 2}));
            }),
            "matmul: b is on another device (cpu) than the first operand (cpu)");
}

TEST_F(Matmul, says_which_groups_do_not_fit) {
  const Tensor x = random({5, 3});
  const Tensor w = random({2, 3, 4});
  const auto said = [&](std::vector<std::int64_t> offsets, MatmulArgs how = {}) {
    return refused([&] { (void)ops::grouped_matmul(x, w, {offsets}, how); });
  };
  EXPECT_EQ(said({0, 5}), "grouped_matmul: 2 offsets for 2 groups; one more than groups is needed");
  EXPECT_EQ(said({0, 6, 5}), "grouped_matmul: offsets descend from 6 to 5");
  EXPECT_EQ(said({0, 2, 4}), "grouped_matmul: groups cover rows 0 to 4 of 5");
  EXPECT_EQ(said({0, 2, 5}, {.b = Read::transposed}),
            "grouped_matmul: [5, 3] by groups of [2, 3, 4]^T does not give [5, 3]");
  EXPECT_EQ(said({0, 2, 5}, {.a = Read::transposed}),
            "grouped_matmul: a transposed gives weight gradients; use grouped_matmul_into");
  EXPECT_EQ(said({0, 2, 5}, {.slabs = 3}), "grouped_matmul: products in groups are not cut into slabs");
  const auto unseen = [&](std::int64_t offsets) {
    return refused([&] { (void)ops::grouped_matmul(x, w, {{}, zeros({offsets}, Dtype::i64)}); });
  };
  EXPECT_EQ(unseen(2), "grouped_matmul: groups.unseen is [2], not [3]");
  EXPECT_EQ(unseen(3), "grouped_matmul: only the device knows the groups of f32, and kernels ask the host");
  const std::vector<std::int64_t> whole{0, 2, 5};
  const auto gradient = [&](const Shape& out, const Tensor& b, MatmulArgs how) {
    how.a = Read::transposed;
    return refused([&] { ops::grouped_matmul_into(zeros(out), x, b, {whole}, how); });
  };
  EXPECT_EQ(gradient({2, 3, 4}, random({5, 3}), {}),
            "grouped_matmul: [5, 3]^T by [5, 3] in groups does not give [2, 3, 4]");
  EXPECT_EQ(gradient({2, 3, 4}, random({5, 4}), {.bias = random({4})}),
            "grouped_matmul: a weight gradient takes no bias");
  EXPECT_EQ(gradient({2, 3, 4}, random({4, 5}), {.b = Read::transposed}),
            "grouped_matmul: b cannot be transposed where a is");
}

}  // namespace
}  // namespace weft
