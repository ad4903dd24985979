#include "weft/base/nearest.h"

#include <gtest/gtest.h>

using namespace weft;

TEST(Nearest, counts_a_swap_of_neighbors_as_one_slip) {
  const std::string_view names[] = {"num-layers", "hidden-size", "lr"};
  EXPECT_EQ(nearest("num-layesr", names), "num-layers");
  EXPECT_EQ(did_you_mean("hiden-size", names), ", did you mean hidden-size");
}

TEST(Nearest, offers_nothing_far_away) {
  const std::string_view names[] = {"num-layers", "hidden-size", "lr"};
  EXPECT_EQ(nearest("completely-else", names), "");
  EXPECT_EQ(did_you_mean("completely-else", names), "");
}
