// Softmax against its definition.
#include <cmath>
#include <limits>

#include "tests/ops/fixture.h"
#include "weft/ops/softmax.h"

namespace weft {
namespace {

using Softmax = Ops;

TEST_F(Softmax, is_what_its_definition_says) {
  const Tensor x = random({2, 3, 4, 6}, Dtype::f32, 3);
  std::vector<double> defined = numbers(x);
  for (std::size_t row = 0; row < defined.size(); row += 6) {
    double sum = 0;
    for (std::size_t j = row; j < row + 6; ++j) sum += defined[j] = std::exp(defined[j]);
    for (std::size_t j = row; j < row + 6; ++j) defined[j] /= sum;
  }
  EXPECT_EQ(difference(numbers(ops::softmax(x)), defined, f32_near), "");
}

TEST_F(Softmax, of_large_numbers_does_not_overflow) {
  EXPECT_EQ(numbers(ops::softmax(holding({1, 2}, {1e30, 1e30}))), (std::vector<double>{0.5, 0.5}));
}

TEST_F(Softmax, of_minus_infinities_is_zero) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(numbers(ops::softmax(holding({2, 2}, {none, none, none, 3}))), (std::vector<double>{0, 0, 0, 1}));
}

TEST_F(Softmax, says_what_does_not_fit) {
  EXPECT_EQ(refused([&] { (void)ops::softmax(zeros({2}, Dtype::i32)); }),
            "softmax: x is i32, not f32, bf16 or f16");
}

}  // namespace
}  // namespace weft
