// Circles that count say what the others say, and how many bytes leave a rank.
#include "weft/comm/counted.h"

#include <gtest/gtest.h>

#include "tests/support/plain_device.h"
#include "weft/comm/threads.h"
#include "weft/tensor/host.h"

using namespace weft;
using weft::testing::PlainDevice;

namespace {

Tensor floats(PlainDevice& device, std::size_t count, float value) {
  return from_host<float>(device, {std::int64_t(count)}, std::vector<float>(count, value));
}

}  // namespace

// Of four ranks three quarters are others': 48 bytes of sums go out twice, 64 of what is gathered once.
TEST(Counted, counts_what_leaves_a_rank) {
  run_as_threads(4, [](Communicator& world) {
    PlainDevice device;
    CountedCommunicator counted(world);
    Sent sent;
    counted.charge_here(sent);
    const int me = counted.rank();
    const Tensor x = floats(device, 16, float(me + 1)), part = floats(device, 4, 0);
    counted.all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(to_host<float>(x), std::vector<float>(16, 10));
    EXPECT_EQ(sent.of(Traffic::sums), 2 * 48);
    counted.reduce_scatter(part, x).wait();
    EXPECT_EQ(to_host<float>(part), std::vector<float>(4, 40));
    EXPECT_EQ(sent.of(Traffic::sums), 3 * 48);
    counted.all_gather(x, part).wait();
    EXPECT_EQ(sent.of(Traffic::gathered), 48);
    const std::vector<std::int64_t> rows{1, 1, 1, 1};
    counted.all_to_all(floats(device, 4, 0), part, rows, rows).wait();
    EXPECT_EQ(sent.of(Traffic::traded), 12);
    counted.broadcast(part, 2).wait();
    EXPECT_EQ(sent.of(Traffic::handed_on), me == 2 ? 16 : 0);
    if (me == 0) counted.send(part, 1, 7).wait();
    if (me == 1) counted.recv(part, 0, 7).wait();
    EXPECT_EQ(sent.of(Traffic::handed_on), me == 2 || me == 0 ? 16 : 0);
    EXPECT_EQ(sent.total(),
              sent.of(Traffic::sums) + sent.of(Traffic::gathered) + 12 + sent.of(Traffic::handed_on));
  });
}

TEST(Counted, charges_the_circle_that_speaks_and_those_split_off_it) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice device;
    CountedCommunicator counted(world);
    const auto pair = counted.split(0, world.rank()), alone = counted.split(world.rank(), 0);
    Sent here, there;
    counted.charge(*pair, here);
    counted.charge(*alone, there);
    const auto inner = pair->split(0, world.rank());
    const Tensor x = floats(device, 2, 1);
    inner->all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(to_host<float>(x), std::vector<float>(2, 2));
    alone->all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(here.total(), 8);
    EXPECT_EQ(there.total(), 0);
  });
}
