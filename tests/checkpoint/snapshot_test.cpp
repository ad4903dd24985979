// Copies that wait to be written: what they hold, and how much room they take.
#include <gtest/gtest.h>

#include "tests/support/plain_device.h"
#include "weft/checkpoint/snapshot.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::checkpoint;
using weft::testing::PlainDevice;

TEST(Snapshot, keeps_what_was_while_training_goes_on) {
  PlainDevice device;
  const Tensor x = from_host<float>(device, {3}, {1, 2, 3});
  Snapshot snapshot;
  snapshot.take(std::vector<Named>{whole("x", x)});
  x.as<float>()[1] = 9;
  ASSERT_EQ(snapshot.named().size(), 1U);
  EXPECT_EQ(to_host<float>(snapshot.named()[0].tensor), (std::vector<float>{1, 2, 3}));
}

TEST(Snapshot, takes_room_for_one_copy_of_what_this_rank_writes_however_often) {
  PlainDevice device;
  const Tensor block = empty(device, {100});
  // Ten elements of the block are this rank's to write, ten another's.
  const std::vector<Named> mine{{"mine", block, {{{{10}, {0}, {10}, 0}, 40}}},
                                {"other", block, {{{{10}, {0}, {10}, 1}, 60}}}};
  Snapshot snapshot;
  for (int i = 0; i < 3; ++i) snapshot.take(mine);
  EXPECT_EQ(snapshot.bytes(), 40);
  ASSERT_EQ(snapshot.named().size(), 1U);
  EXPECT_EQ(snapshot.named()[0].pieces[0].at, 0);
}
