// Reductions against loops; exact sums under every cut and order.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/ops/fixture.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

class Reduce : public Ops {
 protected:
  Tensor no_digits() { return ops::zeros(device(), {exact_digits}, Dtype::f64); }
  static double number_of(const Tensor& digits) {
    return exact_value(digits.as<double>().first<exact_digits>());
  }
};

TEST_F(Reduce, sums_and_finds_the_greatest) {
  const Tensor x = holding({2, 3}, {1, -7, 0, 0.5, 2, 0});
  EXPECT_EQ(number(ops::sum(x)), -3.5);
  EXPECT_EQ(number(ops::sum(x.slice(1, 1, 1))), -5);
  EXPECT_EQ(number(ops::max_abs(x)), 7);
  EXPECT_EQ(number(ops::count_zeros(x)), 2);
  EXPECT_EQ(number(ops::find_nonfinite(x)), -1);
}

TEST_F(Reduce, finds_the_first_that_is_not_finite) {
  const Tensor x = holding({2, 3}, {1, 2, 3, 4, INFINITY, NAN});
  EXPECT_EQ(number(ops::find_nonfinite(x)), 4);
  EXPECT_TRUE(std::isnan(number(ops::max_abs(x))));
  EXPECT_EQ(number(ops::find_nonfinite(x.permute({1, 0}))), 3);
}

TEST_F(Reduce, of_nothing_is_nothing) {
  const Tensor x = random({0, 3});
  EXPECT_EQ(number(ops::sum(x)), 0);
  EXPECT_EQ(number(ops::max_abs(x)), 0);
  EXPECT_EQ(number(ops::find_nonfinite(x)), -1);
  EXPECT_EQ(number(ops::count_zeros(x)), 0);
}

TEST_F(Reduce, squares_give_the_same_bits_however_they_are_cut_and_ordered) {
  EXPECT_TRUE(rc::check([&](std::vector<float> values, bool backwards) {
    // Exponents from all over f32's range.
    std::erase_if(values, [](float x) { return !std::isfinite(x); });
    const auto n = std::int64_t(values.size());
    const Tensor x = from_host<float>(device(), {n}, values);
    const Tensor whole = no_digits();
    ops::sum_squares_into(whole, x);
    std::reverse(values.begin(), values.end());
    const Tensor other = backwards ? from_host<float>(device(), {n}, values) : x;
    const auto cut = *rc::gen::inRange<std::int64_t>(0, n + 1);
    // Two ranks, and an all-reduce between them.
    const Tensor left = no_digits();
    const Tensor right = no_digits();
    ops::sum_squares_into(left, other.slice(0, 0, cut));
    ops::sum_squares_into(right, other.slice(0, cut, n - cut));
    for (std::size_t i = 0; i < exact_digits; ++i) left.as<double>()[i] += right.as<double>()[i];
    RC_ASSERT(number_of(left) == number_of(whole));
    double expected = 0;
    for (const float value : values) expected += double(value) * double(value);
    RC_ASSERT(near(number_of(whole), expected, {1e-12 * double(n + 1), 0}));
  }));
}

TEST_F(Reduce, a_plain_sum_would_have_shown_the_order) {
  // What the exact sum is for: the same terms in f64, in two orders, differ.
  const std::vector<double> terms{1, 0x1p-53, 0x1p-53};
  EXPECT_NE((terms[0] + terms[1]) + terms[2], terms[0] + (terms[1] + terms[2]));
  const Tensor x = holding({3}, terms);
  const Tensor digits = no_digits();
  ops::sum_exact_into(digits, x);
  EXPECT_EQ(number_of(digits), 1 + 0x1p-52);
}

TEST_F(Reduce, exact_sums_cancel_to_nothing) {
  const Tensor digits = no_digits();
  ops::sum_exact_into(digits, holding({4}, {3e38, 1e-45, -3e38, -1e-45}));
  EXPECT_EQ(number_of(digits), 0);
  ops::sum_exact_into(digits, holding({1}, {-2.5}));
  EXPECT_EQ(number_of(digits), -2.5);
}

TEST_F(Reduce, exact_sums_pass_on_what_is_not_finite) {
  const Tensor digits = no_digits();
  ops::sum_squares_into(digits, holding({2}, {-INFINITY, 1}));
  EXPECT_EQ(number_of(digits), INFINITY);
  ops::sum_squares_into(digits, holding({1}, {NAN}));
  EXPECT_TRUE(std::isnan(number_of(digits)));
}

/// Sums of the squares of each, as digits [tensors, of each, exact_digits].
Tensor squares_of(const Tensor& zeros, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    ops::sum_squares_into(zeros.view({std::ssize(tensors), exact_digits}).at(0, std::int64_t(i)), tensors[i]);
  return zeros;
}

TEST_F(Reduce, divides_norms_where_they_are_and_keeps_within_limits) {
  const Tensor five = holding({2}, {3, -4}), tenth = holding({1}, {0.1}), none = zeros({3});
  const Tensor out = zeros({4});
  const auto digits = [&] { return zeros({4, 2, exact_digits}, Dtype::f64); };
  const std::vector<Tensor> pairs{five, tenth, tenth, five, none, five, five, none};
  ops::norm_ratios_into(out, squares_of(digits(), pairs));
  EXPECT_EQ(difference(numbers(out), std::vector<double>{50, 0.02, 1, 1}, f32_near), "");
  ops::norm_ratios_into(out, squares_of(digits(), pairs), {.least = 0.5, .most = 10});
  EXPECT_EQ(numbers(out), (std::vector<double>{10, 0.5, 1, 1}));
  ops::norm_ratios_into(out, squares_of(digits(), pairs), {.most = 10, .of_zero = 0});
  EXPECT_EQ(numbers(out), (std::vector<double>{10, double(0.02F), 0, 0}));
}

TEST_F(Reduce, divides_norms_that_are_not_finite_into_what_is_no_number) {
  const Tensor out = zeros({2});
  const std::vector<Tensor> pairs{holding({1}, {NAN}), holding({1}, {1}), holding({1}, {1}),
                                  holding({1}, {NAN})};
  ops::norm_ratios_into(out, squares_of(zeros({2, 2, exact_digits}, Dtype::f64), pairs));
  for (const double ratio : numbers(out)) EXPECT_TRUE(std::isnan(ratio));
}

TEST_F(Reduce, divides_one_by_norms) {
  const Tensor out = zeros({3});
  const std::vector<Tensor> tensors{holding({2}, {3, -4}), zeros({2}), holding({1}, {0x1p-149})};
  ops::norm_ratios_into(out, squares_of(zeros({3, 1, exact_digits}, Dtype::f64), tensors), {.most = 1e7});
  EXPECT_EQ(numbers(out), (std::vector<double>{double(0.2F), 1, 1e7}));
}

TEST_F(Reduce, says_which_norms_it_cannot_divide) {
  const auto digits = [&](std::int64_t each) { return zeros({2, each, exact_digits}, Dtype::f64); };
  EXPECT_EQ(refused([&] { ops::norm_ratios_into(zeros({2}), digits(3)); }),
            "norm_ratios: digits is [2, 3, 18], not [2, 2, 18]");
  EXPECT_EQ(refused([&] { ops::norm_ratios_into(zeros({2}, Dtype::f64), digits(2)); }),
            "norm_ratios: ratios is f64, not f32");
  EXPECT_EQ(refused([&] { ops::norm_ratios_into(zeros({2}), digits(2), {.least = 2, .most = 1}); }),
            "norm_ratios: least 2 is not at most 1, the most");
}

TEST_F(Reduce, says_what_it_cannot_sum) {
  EXPECT_EQ(refused([&] { ops::sum_squares_into(zeros({1}, Dtype::f64), random({2})); }),
            "sum_squares: digits is [1], not [18]");
  EXPECT_EQ(refused([&] { ops::sum_exact_into(zeros({18}), random({2})); }),
            "sum_exact: digits is f32, not f64");
  EXPECT_EQ(refused([&] { (void)ops::max_abs(zeros({2}, Dtype::i32)); }),
            "max_abs: x is i32, not f32, bf16 or f16");
}

}  // namespace
}  // namespace weft
