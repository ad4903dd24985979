// Products that an activation follows, and the way back through one: against the two apart, and differences.
#include "tests/ops/fixture.h"
#include "weft/ops/activation.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/tensor/meter.h"

namespace weft {
namespace {

using MatmulActivated = Ops;

TEST_F(MatmulActivated, is_a_product_and_then_the_activation) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Tensor a = random({7, 5}, dtype), b = random({6, 5}, dtype), bias = random({6}, dtype);
    for (const Tensor& with : {bias, Tensor()}) {
      const MatmulArgs how{.b = Read::transposed, .bias = with};
      const ops::Activated found = ops::matmul_activated(a, b, {how, Activation::silu});
      const Tensor before = ops::matmul(a, b, how);
      EXPECT_EQ(numbers(found.before), numbers(before));
      EXPECT_EQ(numbers(found.after), numbers(ops::activation(before, {}, Activation::silu)));
    }
  }
}

// The sum over f(before) b^T, which the way back ends in, has the slope that it says.
TEST_F(MatmulActivated, goes_back_with_the_derivatives_that_differences_show) {
  for (const Activation f : {Activation::gelu, Activation::tanh}) {
    const Tensor before = random({3, 4}, Dtype::f32, 2), dy = random({3, 5}), w = random({5, 4});
    const auto forward = [&] {
      return probed(dy, ops::matmul(ops::activation(before, {}, f), w, {.b = Read::transposed}));
    };
    EXPECT_EQ(
        difference(numbers(ops::matmul_derived(dy, w, before, {{}, f})), slopes(before, forward), slope_near),
        "");
  }
}

TEST_F(MatmulActivated, reads_transposed_views) {
  const Tensor a = random({5, 7}), b = random({6, 5}), before = random({7, 6});
  const Tensor turned_a = a.permute({1, 0}), turned_b = b.permute({1, 0});
  EXPECT_EQ(difference(numbers(ops::matmul_activated(turned_a, turned_b, {}).before),
                       numbers(ops::matmul(turned_a, turned_b)), f32_near),
            "");
  EXPECT_EQ(ops::matmul_derived(turned_a, turned_b, before, {}).shape(), (Shape{7, 6}));
}

TEST_F(MatmulActivated, counts_its_work_from_shapes) {
  device().work() = {};
  (void)ops::matmul_activated(random({6, 5}, Dtype::bf16), random({5, 4}, Dtype::bf16), {});
  const auto of = [&](Work work) { return device().work().by[std::size_t(work)]; };
  EXPECT_EQ(of(Work::product), (Tally{1, 2 * 24 * 5, 2 * (30 + 20 + 24 + 24)}));
  EXPECT_EQ(of(Work::elementwise), (Tally{1, 24 * 10, 0}));
}

TEST_F(MatmulActivated, says_what_does_not_fit) {
  const Tensor a = random({2, 3}), b = random({3, 4});
  const auto forth = [&](const Tensor& x, const ActivatedArgs& how) {
    return refused([&] { (void)ops::matmul_activated(x, b, how); });
  };
  EXPECT_EQ(forth(random({2, 5}), {}), "matmul_activated: [2, 5] does not meet [3, 4]");
  EXPECT_EQ(forth(random({1, 2, 3}), {}), "matmul_activated: a [1, 2, 3] has 3 dimensions, not 2");
  EXPECT_EQ(forth(a, {{.bias = random({3})}, Activation::gelu}), "matmul_activated: bias is [3], not [4]");
  EXPECT_EQ(forth(a, {{.accumulate = true}, Activation::gelu}),
            "matmul_activated: what an activation follows is one product, and added to nothing");
  EXPECT_EQ(forth(random({2, 3}, Dtype::bf16), {}), "matmul_activated: a is bf16 and b is f32");
  EXPECT_EQ(refused([&] {
              (void)ops::matmul_derived(a, b, random({2, 3}), {});
            }),
            "matmul_derived: before is [2, 3], not [2, 4]");
}

using WeightGradient = Ops;

TEST_F(WeightGradient, is_what_products_and_sums_add) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const bool on_top : {true, false}) {
      const Tensor dy = random({7, 5}, dtype), x = random({7, 6}, dtype), start = random({5, 6}),
                   some = random({5});
      const Tensor dw = holding({5, 6}, numbers(start)), db = holding({5}, numbers(some));
      ops::weight_gradient_into({{dw, on_top}, db}, dy, x);
      ops::matmul_into(start, dy, x, {.a = Read::transposed, .accumulate = on_top});
      ops::sum_rows_into(some, dy);
      EXPECT_EQ(numbers(dw), numbers(start));
      EXPECT_EQ(numbers(db), numbers(some));
    }
}

TEST_F(WeightGradient, of_no_rows_or_of_turned_views_is_that_too) {
  const Tensor dw = zeros({2, 3}), db = zeros({2});
  ops::weight_gradient_into({{dw}, db}, random({0, 2}), random({0, 3}));
  EXPECT_EQ(numbers(dw), std::vector<double>(6));
  ops::weight_gradient_into({{dw}, db}, holding({2, 1}, {1, 2}).permute({1, 0}),
                            holding({3, 1}, {1, 2, 3}).permute({1, 0}));
  EXPECT_EQ(numbers(dw), (std::vector<double>{1, 2, 3, 2, 4, 6}));
  EXPECT_EQ(numbers(db), (std::vector<double>{1, 2}));
  ops::weight_gradient_into({{dw, false}, db}, random({0, 2}), random({0, 3}));
  EXPECT_EQ(numbers(dw), std::vector<double>(6));
}

TEST_F(WeightGradient, says_what_does_not_fit) {
  const auto said = [&](const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x) {
    return refused([&] { ops::weight_gradient_into({{dw}, db}, dy, x); });
  };
  const Tensor dy = random({4, 2}), x = random({4, 3});
  EXPECT_EQ(said(zeros({2, 2}), zeros({2}), dy, x), "matmul: [4, 2]^T by [4, 3] does not give [2, 2]");
  EXPECT_EQ(said(zeros({2, 3}), zeros({3}), dy, x), "weight_gradient: db is [3], not [2]");
  EXPECT_EQ(said(zeros({2, 3}), zeros({2}, Dtype::bf16), dy, x), "weight_gradient: db is bf16, not f32");
  EXPECT_EQ(said(zeros({2, 3}), zeros({2}), random({2}), x),
            "weight_gradient: dy [2] has 1 dimensions, not 2");
}

}  // namespace
}  // namespace weft
