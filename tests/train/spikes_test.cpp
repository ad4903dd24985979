#include "weft/train/spikes.h"

#include <gtest/gtest.h>

using namespace weft;

TEST(Spikes, are_losses_ten_times_the_largest_of_the_first_hundred) {
  SpikeWatch watch;
  EXPECT_FALSE(watch.look(4).has_value());
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(watch.look(i == 50 ? 3 : 2).has_value());
  EXPECT_FALSE(watch.look(40).has_value());
  EXPECT_EQ(watch.look(40.1), 4);
  EXPECT_FALSE(watch.look(3).has_value());
}
