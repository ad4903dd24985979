// Softmax against its definition with every mask, its derivative and its logarithm against differences.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/softmax.h"

namespace weft {
namespace {

using Softmax = Ops;

/// exp(x) over the sum of what is seen; zeros where nothing is.
std::vector<double> defined(const Tensor& x,
                            const std::function<bool(std::int64_t b, std::int64_t i, std::int64_t j)>& sees) {
  std::vector<double> out = numbers(x);
  const std::int64_t sq = x.dim(-2);
  const std::int64_t sk = x.dim(-1);
  for (std::int64_t row = 0; row * sk < std::int64_t(out.size()); ++row) {
    const std::int64_t b = row / (x.dim(1) * sq);
    double sum = 0;
    for (std::int64_t j = 0; j < sk; ++j) {
      double& element = out[std::size_t(row * sk + j)];
      element = sees(b, row % sq, j) ? std::exp(element) : 0;
      sum += element;
    }
    for (std::int64_t j = 0; j < sk; ++j) out[std::size_t(row * sk + j)] /= sum > 0 ? sum : 1;
  }
  return out;
}

TEST_F(Softmax, is_what_its_definition_says_under_every_mask) {
  const Tensor x = random({2, 3, 4, 6}, Dtype::f32, 3);
  const Tensor padding = holding({2, 6}, {0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1}, Dtype::u8);
  const std::vector<double> real = numbers(padding);
  const auto causal = [](std::int64_t, std::int64_t i, std::int64_t j) { return j <= i + 2; };
  const auto unpadded = [&](std::int64_t b, std::int64_t, std::int64_t j) {
    return real[std::size_t(b * 6 + j)] != 0;
  };
  const auto both = [&](std::int64_t b, std::int64_t i, std::int64_t j) {
    return causal(b, i, j) && unpadded(b, i, j);
  };
  const auto all = [](std::int64_t, std::int64_t, std::int64_t) { return true; };
  EXPECT_EQ(difference(numbers(ops::softmax(x)), defined(x, all), f32_near), "");
  EXPECT_EQ(difference(numbers(ops::softmax(x, Mask::causal)), defined(x, causal), f32_near), "");
  EXPECT_EQ(difference(numbers(ops::softmax(x, Mask::none, padding)), defined(x, unpadded), f32_near), "");
  EXPECT_EQ(difference(numbers(ops::softmax(x, Mask::causal, padding)), defined(x, both), f32_near), "");
}

TEST_F(Softmax, of_large_numbers_does_not_overflow) {
  EXPECT_EQ(numbers(ops::softmax(holding({1, 2}, {1e30, 1e30}))), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(number(ops::log_sum_exp(holding({1, 1}, {3e38}))), double(3e38F));
}

TEST_F(Softmax, has_the_derivative_that_differences_show) {
  const Tensor x = random({2, 2, 3, 5}, Dtype::f32, 2);
  const Tensor dy = random({2, 2, 3, 5});
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const Tensor dx = ops::softmax_backward(dy, ops::softmax(x, mask));
    const auto f = [&] { return probed(dy, ops::softmax(x, mask)); };
    EXPECT_EQ(difference(numbers(dx), slopes(x, f), slope_near), "");
  }
}

TEST_F(Softmax, is_the_derivative_of_the_log_of_the_sum) {
  const Tensor x = random({3, 5}, Dtype::f32, 2);
  const Tensor ones = holding({3}, {1, 1, 1});
  const auto f = [&] { return probed(ones, ops::log_sum_exp(x)); };
  EXPECT_EQ(difference(numbers(ops::softmax(x)), slopes(x, f), slope_near), "");
}

TEST_F(Softmax, says_what_does_not_fit) {
  const Tensor x = random({2, 3, 4});
  EXPECT_EQ(refused([&] {
              (void)ops::softmax(x, Mask::none, zeros({2, 3}, Dtype::u8));
            }),
            "softmax: padding is [2, 3], not [2, 4]");
  EXPECT_EQ(refused([&] {
              (void)ops::softmax(x, Mask::none, zeros({2, 4}));
            }),
            "softmax: padding is f32, not u8");
  EXPECT_EQ(refused([&] { (void)ops::softmax(random({4}), Mask::causal); }),
            "softmax: x [4] has 1 dimensions, not 2 to 6");
  EXPECT_EQ(refused([&] { (void)ops::softmax_backward(random({2}), x); }),
            "softmax_backward: dy is [2], not [2, 3, 4]");
}

}  // namespace
}  // namespace weft
