// Rotary positions: angles, both pairings, the way back, and that only distances matter.
#include <cmath>

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/rope.h"

namespace weft {
namespace {

/// Cosine and sine of position times base^(-2 i / channels) for every pair i.
class Rope : public Ops {
 protected:
  struct Table {
    std::int64_t positions, channels;
    double base = 10000;
  };
  Tensor angles_of(const Table& table) {
    std::vector<double> angles;
    for (std::int64_t at = 0; at < table.positions; ++at)
      for (std::int64_t i = 0; i < table.channels; i += 2) {
        const double angle = double(at) * std::pow(table.base, -double(i) / double(table.channels));
        angles.push_back(std::cos(angle));
        angles.push_back(std::sin(angle));
      }
    return holding({table.positions, table.channels / 2, 2}, angles);
  }
};

TEST_F(Rope, turns_pairs_of_channels_by_position_times_frequency) {
  const Tensor angles = angles_of({4, 4, 100});
  const double one = std::cos(3.0);
  const double slow = 3 * 0.1;  // 100^(-2/4)
  const Tensor x = holding(
      {4, 1, 6}, std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6});
  const Tensor halves = testing::add(x, zeros({4, 1, 6}));
  ops::rope_in_place(halves, {.angles = angles});
  EXPECT_EQ(
      difference(numbers(halves.at(0, 3)),
                 std::vector<double>{one - 3 * std::sin(3.0), 2 * std::cos(slow) - 4 * std::sin(slow),
                                     std::sin(3.0) + 3 * one, 2 * std::sin(slow) + 4 * std::cos(slow), 5, 6},
                 f32_near),
      "");
  ops::rope_in_place(x, {.angles = angles, .pairing = Pairing::neighbours});
  EXPECT_EQ(difference(numbers(x.at(0, 3)),
                       std::vector<double>{one - 2 * std::sin(3.0), std::sin(3.0) + 2 * one,
                                           3 * std::cos(slow) - 4 * std::sin(slow),
                                           3 * std::sin(slow) + 4 * std::cos(slow), 5, 6},
                       f32_near),
            "");
}

TEST_F(Rope, turned_back_is_where_it_was) {
  const Tensor angles = angles_of({9, 8});
  const Tensor positions = integers({2, 5}, {0, 1, 2, 3, 4, 8, 7, 0, 1, 2});
  for (const Pairing pairing : {Pairing::halves, Pairing::neighbours}) {
    const Tensor x = random({5, 2, 3, 8});
    const std::vector<double> before = numbers(x);
    ops::rope_in_place(x, {.angles = angles, .positions = positions, .pairing = pairing});
    EXPECT_NE(difference(numbers(x), before, f32_near), "");
    ops::rope_in_place(
        x, {.angles = angles, .positions = positions, .pairing = pairing, .turn = Turn::backward});
    EXPECT_EQ(difference(numbers(x), before, f32_near), "");
  }
}

TEST_F(Rope, makes_products_depend_on_distance_only) {
  const Tensor angles = angles_of({50, 8, 30});
  const Tensor q = random({1, 1, 8});
  const Tensor k = random({1, 1, 8});
  const auto score = [&](double i, double j) {
    const Tensor a = testing::add(q, zeros({1, 1, 8}));
    const Tensor b = testing::add(k, zeros({1, 1, 8}));
    ops::rope_in_place(a, {.angles = angles, .positions = integers({1}, {i})});
    ops::rope_in_place(b, {.angles = angles, .positions = integers({1}, {j})});
    return probed(a, b);
  };
  EXPECT_NEAR(score(7, 3), score(46, 42), 1e-5);
  EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1e-3);
}

TEST_F(Rope, takes_positions_by_row_of_the_batch) {
  const Tensor angles = angles_of({9, 4});
  const Tensor x = random({3, 2, 4});
  const Tensor second = testing::add(x.slice(1, 1, 1), zeros({3, 1, 4}));
  ops::rope_in_place(x, {.angles = angles, .positions = integers({2, 3}, {0, 1, 2, 5, 0, 8})});
  ops::rope_in_place(second, {.angles = angles, .positions = integers({3}, {5, 0, 8})});
  EXPECT_EQ(numbers(x.slice(1, 1, 1)), numbers(second));
}

TEST_F(Rope, says_what_does_not_fit) {
  const Tensor angles = angles_of({3, 4});
  const auto said = [&](const Shape& shape, const Tensor& positions = {}) {
    return refused([&] { ops::rope_in_place(random(shape), {.angles = angles, .positions = positions}); });
  };
  EXPECT_EQ(said({2, 1, 2}), "rope: angles [3, 2, 2] do not fit the 2 channels of x");
  EXPECT_EQ(said({4, 1, 4}), "rope: 4 steps, but angles for 3 positions");
  EXPECT_EQ(said({2, 1, 4}, integers({3}, {0, 1, 2})), "rope: positions is [3], not [2]");
  EXPECT_EQ(said({2, 1, 4}, integers({2}, {0, 3})), "rope: position 3 of step 1, but angles for 3 positions");
}

}  // namespace
}  // namespace weft
