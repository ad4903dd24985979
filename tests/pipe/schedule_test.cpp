#include "weft/pipe/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/refused.h"
#include "weft/pipe/rehearse.h"

using namespace weft;
using namespace weft::pipe;

TEST(Schedule, one_f_one_b_has_the_textbook_bubble_and_memory) {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p}) {
      const auto seen = rehearse(with_transfers(one_f_one_b(p, m)));
      EXPECT_EQ(seen.duration, 3 * (m + p - 1));
      for (int r = 0; r < p; ++r) EXPECT_EQ(seen.peak_remembered[std::size_t(r)], std::min(p - r, m));
    }
}

TEST(Schedule, zero_bubble_cuts_the_bubble_to_a_third_in_the_same_memory) {
  for (const int p : {2, 4, 8}) {
    const int m = 3 * p;
    const auto seen = rehearse(with_transfers(zero_bubble_h1(p, m)));
    EXPECT_EQ(seen.duration, 3 * m + (p - 1));
    for (const int peak : seen.peak_remembered) EXPECT_LE(peak, p);
  }
}

TEST(Schedule, interleaving_divides_the_bubble_by_the_chunks) {
  for (const int p : {2, 4, 8})
    for (const int v : {2, 4}) {
      const int m = 2 * p;
      EXPECT_EQ(rehearse(with_transfers(interleaved(p, v, m))).duration, 3 * (m * v + p - 1));
    }
}

TEST(Schedule, interleaving_takes_uneven_groups_as_megatron_does) {
  EXPECT_NO_THROW(rehearse(with_transfers(interleaved(4, 2, 10, 6)), {}, Delivery::in_order));
  EXPECT_NO_THROW(rehearse(with_transfers(interleaved(4, 3, 16, 8)), {}, Delivery::in_order));
  EXPECT_EQ(refused([] { (void)interleaved(4, 2, 10); }),
            "interleaved: 10 microbatches in groups of 4 leave a group smaller than 4 ranks");
}
