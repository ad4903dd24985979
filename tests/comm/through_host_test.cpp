// Words of a device whose memory the host cannot read are those of one whose memory it can.
#include "weft/comm/through_host.h"

#include <gtest/gtest.h>

#include "tests/support/late_device.h"
#include "tests/support/plain_device.h"
#include "tests/support/refused.h"
#include "weft/comm/threads.h"
#include "weft/tensor/host.h"

using namespace weft;
using weft::testing::Late;
using weft::testing::LateDevice;
using weft::testing::PlainDevice;

namespace {

constexpr int ranks = 3;

std::unique_ptr<LateDevice> late_device() {
  return std::make_unique<LateDevice>(std::make_unique<PlainDevice>(), Late::when_waited);
}

/// Rows [count, 2] of numbers that only this rank has, behind a row that belongs to nobody.
Tensor rows_of(Device& device, int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < 2 * count + 2; ++i) values.push_back(0.1F * float(i) + float(7 * rank));
  return from_host(device, {count + 1, 2}, values).slice(0, 1, count);
}

using Said = std::vector<std::vector<double>>;

/// What a rank holds after each word, and what lies before it.
Said said_by(Communicator& circle, Device& device) {
  const int rank = circle.rank(), n = circle.size();
  const Tensor sum = rows_of(device, rank, 4), whole = rows_of(device, rank, n),
               mine = rows_of(device, rank, 1);
  const Tensor part = rows_of(device, rank, 1), told = rows_of(device, rank, 2),
               got = rows_of(device, rank, 1);
  const Tensor in = rows_of(device, rank, n), out = rows_of(device, 9, n);
  const std::vector<std::int64_t> one_each(std::size_t(n), 1);
  Pending reduced = circle.all_reduce(sum, Reduce::sum);
  Pending scattered = circle.reduce_scatter(part, rows_of(device, rank, n));
  circle.all_gather(whole, mine).wait();
  circle.broadcast(told, 1).wait();
  circle.all_to_all(out, in, one_each, one_each).wait();
  Pending sent = circle.send(mine, (rank + 1) % n, 5);
  circle.recv(got, (rank + n - 1) % n, 5).wait();
  sent.wait();
  scattered.wait();
  reduced.wait();
  Said said;
  for (const Tensor* x : {&sum, &part, &whole, &told, &out, &got}) {
    said.push_back(numbers(*x));
    said.push_back(numbers(Tensor(x->storage(), {2}, Dtype::f32)));
  }
  return said;
}

TEST(ThroughHost, ranks_hear_what_they_would_hear_if_the_host_read_their_memory) {
  run_as_threads(ranks, [](Communicator& world) {
    PlainDevice plain, host;
    const auto late = late_device();
    HostCommunicator circle(world, host);
    EXPECT_EQ(said_by(circle, *late), said_by(world, plain));
    const auto other = circle.split(0, -world.rank());
    const auto expected = world.split(0, -world.rank());
    EXPECT_EQ(said_by(*other, *late), said_by(*expected, plain));
  });
}

TEST(ThroughHost, words_of_nothing_are_said) {
  run_as_threads(ranks, [](Communicator& world) {
    PlainDevice host;
    const auto late = late_device();
    HostCommunicator circle(world, host);
    const Tensor none = empty(*late, {0, 2});
    circle.all_reduce(none, Reduce::max).wait();
    circle.broadcast(none, 0).wait();
    EXPECT_EQ(none.elements(), 0);
  });
}

TEST(ThroughHost, is_the_circle_it_speaks_by) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice host;
    HostCommunicator circle(world, host);
    EXPECT_EQ(circle.rank(), world.rank());
    EXPECT_EQ(circle.size(), 2);
    EXPECT_EQ(circle.pulse(), world.pulse());
    EXPECT_STREQ(circle.carrier(), "threads");
    EXPECT_TRUE(circle.adds_as_trees());
    EXPECT_EQ(circle.tell_all(std::to_string(world.rank())), (std::vector<std::string>{"0", "1"}));
    std::vector<double> most{double(world.rank())};
    circle.agree(most, Reduce::max);
    EXPECT_EQ(most[0], 1);
    circle.barrier();
  });
}

// What one rank adds up by itself stays in its device's memory: nobody waits, and nothing is copied.
TEST(ThroughHost, a_circle_of_one_leaves_memory_where_it_is) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice host;
    const auto late = late_device();
    HostCommunicator circle(world, host);
    const auto alone = circle.split(world.rank(), 0);
    const Tensor x = rows_of(*late, world.rank(), 2);
    const int before = late->waits();
    alone->all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(late->waits(), before);
    EXPECT_EQ(alone->size(), 1);
    EXPECT_EQ(numbers(x), numbers(rows_of(*late, world.rank(), 2)));
  });
}

TEST(ThroughHost, refuses_gaps) {
  PlainDevice host;
  run_as_threads(1, [&](Communicator& world) {
    const auto late = late_device();
    HostCommunicator circle(world, host);
    const Tensor gaps = empty(*late, {4, 2}).slice(1, 0, 1);
    EXPECT_EQ(refused([&] { circle.all_reduce(gaps, Reduce::sum).wait(); }),
              "all_reduce: [4, 1] with strides [2, 1] has gaps; it must be contiguous");
  });
}

}  // namespace
