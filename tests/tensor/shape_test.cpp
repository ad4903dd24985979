#include "weft/tensor/shape.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"

using namespace weft;

TEST(Shape, counts_its_elements) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({}).elements(), 1);
  EXPECT_EQ(Shape({5, 0}).elements(), 0);
  EXPECT_EQ(Shape({2, 3})[-1], 3);
}

TEST(Shape, refuses_sizes_that_cannot_be) {
  EXPECT_EQ(refused([] { Shape({2, -1}); }), "shape: [2, -1] has a negative size");
  EXPECT_EQ(refused([] {
              Shape({1L << 40, 1L << 40});
            }),
            "shape: [1099511627776, 1099511627776] has more elements than 63 bits can count");
  EXPECT_EQ(refused([] { Shape({1, 1, 1, 1, 1, 1, 1}); }), "shape: 7 dimensions, at most 6 are supported");
}

TEST(Strides, of_a_filled_tensor_count_from_the_last_dimension) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), Strides({12, 4, 1}));
}
