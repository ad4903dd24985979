// Softmax, and rotary positions.
#include <limits>

#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

TEST_P(Conformance, gives_softmax) {
  for (const Dtype dtype : floats)
    for (const Shape& shape : {Shape{2, 3, 7, 7}, Shape{2, 1, 5, 33}, Shape{54, 4}, Shape{3, 1}})
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal(shape, dtype, 4);
        const Tensor y = desk.blank(shape, dtype);
        desk.kernels().softmax(y, x);
        desk.result("y", y, close(dtype, 8));
        desk.kernels().softmax(x, x);
        desk.result("y in place of x", x, close(dtype, 8));
      });
}

TEST_P(Conformance, gives_zeros_for_a_row_of_minus_infinities) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  for (const Dtype dtype : floats)
    same_however_it_lies([&](Desk& desk) {
      const Tensor x = desk.holding({2, 3}, dtype, {none, none, none, 1, none, 2});
      desk.kernels().softmax(x, x);
      desk.result("y", x, close(dtype, 8));
    });
}

struct RopeCase {
  std::int64_t d, rotated;
  Pairing pairing;
  Turn turn;
  int position_rank;
};

void turn(Desk& desk, const RopeCase& c, Dtype dtype) {
  const Tensor x = desk.normal({6, 3, 4, c.d}, dtype);
  desk.lay(Lay::contiguous);
  RopeArgs how{.angles = desk.normal({20, c.rotated / 2, 2}), .pairing = c.pairing, .turn = c.turn};
  if (c.position_rank == 1) how.positions = desk.integers({6}, Dtype::i32, 0, 20);
  if (c.position_rank == 2) how.positions = desk.integers({3, 6}, Dtype::i32, 0, 20);
  desk.kernels().rope(x, how);
  desk.result("x", x, close(dtype, 2, 2));
}

TEST_P(Conformance, turns_by_position) {
  for (const Dtype dtype : floats)
    for (const Pairing pairing : {Pairing::halves, Pairing::neighbours})
      for (const Turn direction : {Turn::forward, Turn::backward})
        for (const std::int64_t d : {2, 8, 20, 64})
          for (int rank = 0; rank <= 2; ++rank)
            for (const Lay lay : {Lay::contiguous, Lay::gaps, Lay::swapped}) {
              const RopeCase c{d, d == 20 ? 10 : d, pairing, direction, rank};
              same([&](Desk& desk) { turn(desk, c, dtype); }, lay);
            }
}

TEST_P(Conformance, refuses_a_position_without_angles) {
  for (const auto& open : {GetParam().open}) {
    const auto device = open(1);
    Desk desk(*device, Lay::contiguous);
    const Tensor x = desk.normal({2, 1, 1, 4});
    const RopeArgs how{.angles = desk.normal({3, 2, 2}), .positions = desk.holding({2}, Dtype::i32, {0, 3})};
    EXPECT_THROW(desk.kernels().rope(x, how), Error);
  }
}

}  // namespace
}  // namespace weft::conformance
