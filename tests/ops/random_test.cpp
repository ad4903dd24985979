// Initial weights: the same numbers for every cut, with the mean and the spread asked for.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/random.h"

namespace weft {
namespace {

using Random = Ops;
const Address place{.seed = 42, .purpose = Purpose::init, .layer = 3};

TEST_F(Random, draws_a_block_as_the_whole_has_it) {
  const Tensor whole = zeros({8, 10});
  const Tensor block = zeros({3, 4});
  ops::random_normal_into(whole, 0, 1, {.at = place, .columns = 10});
  ops::random_normal_into(block, 0, 1, {.at = place, .row = 2, .column = 5, .columns = 10});
  EXPECT_EQ(numbers(block), numbers(whole.slice(0, 2, 3).slice(1, 5, 4)));
  ops::random_uniform_into(whole, -1, 3, {.at = place, .columns = 10});
  ops::random_uniform_into(block, -1, 3, {.at = place, .row = 5, .column = 1, .columns = 10});
  EXPECT_EQ(numbers(block), numbers(whole.slice(0, 5, 3).slice(1, 1, 4)));
}

TEST_F(Random, has_the_mean_and_the_spread_asked_for) {
  const Tensor x = zeros({200, 500});
  ops::random_normal_into(x, 2, 0.5F, {.at = place, .columns = 500});
  double sum = 0;
  double squares = 0;
  for (const double value : numbers(x)) {
    sum += value - 2;
    squares += (value - 2) * (value - 2);
  }
  EXPECT_NEAR(sum / 1e5, 0, 4 * 0.5 / std::sqrt(1e5));
  EXPECT_NEAR(squares / 1e5, 0.25, 4 * 0.25 * std::sqrt(2 / 1e5));
}

TEST_F(Random, says_which_blocks_are_not_inside) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(refused([&] { ops::random_normal_into(x, 0, 1, {.column = 1, .columns = 3}); }),
            "random_normal: a block of 3 columns at [0, 1] is not inside a matrix of 3 columns");
  EXPECT_EQ(refused([&] { ops::random_uniform_into(x, 0, 1, {.row = std::int64_t{1} << 62, .columns = 3}); }),
            "random_uniform: 4611686018427387906 rows of 3 columns are more than 63 bits can number");
}

}  // namespace
}  // namespace weft
