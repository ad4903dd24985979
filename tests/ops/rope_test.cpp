// Rotary positions: angles, both pairings, the way back, and that only distances matter.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/rope.h"

namespace weft {
namespace {

using Rope = Ops;

TEST_F(Rope, turns_pairs_of_channels_by_position_times_frequency) {
  const Tensor angles = ops::rope_angles(device(), {.positions = 4, .rotated = 4, .base = 100});
  const double one = std::cos(3.0);
  const double slow = 3 * 0.1;  // 100^(-2/4)
  const Tensor x = holding(
      {4, 1, 6}, std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6});
  const Tensor halves = ops::add(x, zeros({4, 1, 6}));
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
  const Tensor angles = ops::rope_angles(device(), {.positions = 9, .rotated = 8});
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
  const Tensor angles = ops::rope_angles(device(), {.positions = 50, .rotated = 8, .base = 30});
  const Tensor q = random({1, 1, 8});
  const Tensor k = random({1, 1, 8});
  const auto score = [&](double i, double j) {
    const Tensor a = ops::add(q, zeros({1, 1, 8}));
    const Tensor b = ops::add(k, zeros({1, 1, 8}));
    ops::rope_in_place(a, {.angles = angles, .positions = integers({1}, {i})});
    ops::rope_in_place(b, {.angles = angles, .positions = integers({1}, {j})});
    return probed(a, b);
  };
  EXPECT_NEAR(score(7, 3), score(46, 42), 1e-5);
  EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1e-3);
}

TEST_F(Rope, takes_positions_by_row_of_the_batch) {
  const Tensor angles = ops::rope_angles(device(), {.positions = 9, .rotated = 4});
  const Tensor x = random({3, 2, 4});
  const Tensor second = ops::add(x.slice(1, 1, 1), zeros({3, 1, 4}));
  ops::rope_in_place(x, {.angles = angles, .positions = integers({2, 3}, {0, 1, 2, 5, 0, 8})});
  ops::rope_in_place(second, {.angles = angles, .positions = integers({3}, {5, 0, 8})});
  EXPECT_EQ(numbers(x.slice(1, 1, 1)), numbers(second));
}

TEST_F(Rope, stretches_low_frequencies_only) {
  const ops::RopeTable plain{.positions = 1, .rotated = 128, .base = 500000};
  ops::RopeTable stretched = plain;
  stretched.stretch = {.factor = 8};
  const std::vector<double> before = ops::rope_frequencies(plain);
  const std::vector<double> after = ops::rope_frequencies(stretched);
  EXPECT_EQ(after.front(), before.front());
  EXPECT_DOUBLE_EQ(after.back(), before.back() / 8);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double wavelength = 2 * 3.14159265358979323846 / before[i];
    if (wavelength < 8192.0 / 4) {
      EXPECT_EQ(after[i], before[i]);
    }
    if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(after[i], before[i] / 8);
    }
    EXPECT_LE(after[i], before[i]);
  }
}

TEST_F(Rope, divides_positions_where_asked) {
  const Tensor near = ops::rope_angles(device(), {.positions = 3, .rotated = 4});
  const Tensor far = ops::rope_angles(device(), {.positions = 5, .rotated = 4, .interpolation = 2});
  EXPECT_EQ(numbers(far.at(0, 4)), numbers(near.at(0, 2)));
}

TEST_F(Rope, says_what_does_not_fit) {
  const Tensor angles = ops::rope_angles(device(), {.positions = 3, .rotated = 4});
  const auto said = [&](const Shape& shape, const Tensor& positions = {}) {
    return refused([&] { ops::rope_in_place(random(shape), {.angles = angles, .positions = positions}); });
  };
  EXPECT_EQ(said({2, 1, 2}), "rope: angles [3, 2, 2] do not fit the 2 channels of x");
  EXPECT_EQ(said({4, 1, 4}), "rope: 4 steps, but angles for 3 positions");
  EXPECT_EQ(said({2, 1, 4}, integers({3}, {0, 1, 2})), "rope: positions is [3], not [2]");
  EXPECT_EQ(said({2, 1, 4}, integers({2}, {0, 3})), "rope: position 3 of step 1, but angles for 3 positions");
  EXPECT_EQ(refused([&] { (void)ops::rope_frequencies({.rotated = 3}); }),
            "rope: 3 rotated channels are not pairs");
  EXPECT_EQ(refused([&] { (void)ops::rope_frequencies({.rotated = 4, .base = 0}); }),
            "rope: a base of 0 is not positive");
  EXPECT_EQ(
      refused([&] { (void)ops::rope_angles(device(), {.positions = 1, .rotated = 2, .interpolation = 0}); }),
      "rope: positions cannot be divided by 0");
}

}  // namespace
}  // namespace weft
