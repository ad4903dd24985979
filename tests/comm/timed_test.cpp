// Circles that look at the clock say what the others say, and who was waited for.
#include "weft/comm/timed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/plain_device.h"
#include "weft/base/clock.h"
#include "weft/comm/threads.h"
#include "weft/tensor/host.h"

using namespace weft;
using weft::testing::PlainDevice;

namespace {

/// Spends this rank's time.
void work(double seconds) {
  const Stopwatch watch;
  while (watch.seconds() < seconds) {
  }
}

}  // namespace

TEST(Timed, charges_the_circle_in_which_a_rank_waits) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice device;
    TimedCommunicator timed(world);
    const auto pair = timed.split(0, world.rank()), quiet = timed.split(0, world.rank());
    Spent waited, elsewhere;
    timed.charge(*pair, waited);
    timed.charge(*quiet, elsewhere);
    const Tensor x = from_host<float>(device, {2}, std::vector<float>{1, 2});
    if (world.rank() == 1) work(0.05);
    pair->all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(to_host<float>(x), (std::vector<float>{2, 4}));
    // The one that comes late waits for nobody: only the first has to be slow.
    if (world.rank() == 0) {
      EXPECT_GT(waited.seconds(), 0.04);
    }
    EXPECT_EQ(elsewhere.seconds(), 0);
  });
}

TEST(Timed, says_every_word_of_the_circle_within) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice device;
    TimedCommunicator timed(world);
    const int me = timed.rank(), other = 1 - me;
    EXPECT_EQ(timed.size(), 2);
    const auto mine = float(me + 1);
    const auto tensor = [&](std::vector<float> values) {
      return from_host<float>(device, {std::int64_t(values.size())}, values);
    };
    const Tensor one = tensor({mine}), two = tensor({0, 0}), got = tensor({0});
    timed.all_gather(two, one).wait();
    EXPECT_EQ(to_host<float>(two), (std::vector<float>{1, 2}));
    timed.reduce_scatter(got, two).wait();
    EXPECT_EQ(to_host<float>(got), (std::vector<float>{2 * mine}));
    Pending coming = timed.recv(got, other, 1), going = timed.send(one, other, 1);
    coming.wait();
    going.wait();
    EXPECT_EQ(to_host<float>(got), (std::vector<float>{float(other + 1)}));
    const std::vector<std::int64_t> rows{1, 1};
    const Tensor traded = tensor({0, 0});
    timed.all_to_all(traded, two, rows, rows).wait();
    EXPECT_EQ(to_host<float>(traded), (std::vector<float>{mine, mine}));
    timed.broadcast(one, 1).wait();
    EXPECT_EQ(to_host<float>(one), (std::vector<float>{2}));
    timed.barrier();
  });
}
