// Words that go from GPU to GPU are those that hosts would say. The watcher must have found nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <runtime.h>

#include <array>
#include <functional>

#include "tests/support/gpu/emulated.h"
#include "tests/support/plain_device.h"
#include "tests/support/refused.h"
#include "tests/support/tcp_ranks.h"
#include "weft/backend/cuda/nccl_lines.h"
#include "weft/base/format.h"
#include "weft/comm/direct.h"
#include "weft/comm/threads.h"
#include "weft/tensor/host.h"

using namespace weft;
using ::testing::HasSubstr;
using weft::testing::PlainDevice;

namespace {

constexpr std::array<unsigned, 4> paces{emulated::lazy, emulated::eager, 7, 11};

/// As many GPUs as ranks, working in some legal order; and nothing found at the end.
class GpuLines : public ::testing::Test {
 protected:
  void TearDown() override {
    emulated::set_cards({});
    emulated::set_pace(emulated::lazy);
    emulated::set_patience(2);
    cudaSetDevice(0);
  }
  /// What every rank does on a GPU of its own, with what it speaks by and the circle of the hosts.
  struct Rank {
    CudaDevice& device;
    DirectCommunicator& circle;
    Communicator& world;
  };
  static void on_ranks(int ranks, unsigned pace, const std::function<void(const Rank&)>& act) {
    emulated::set_cards({.count = ranks});
    emulated::set_pace(pace);
    run_as_threads(ranks, [&](Communicator& world) { on_its_gpu(world, act); });
  }
  static void on_its_gpu(Communicator& world, const std::function<void(const Rank&)>& act) {
    CudaDevice device({.device = world.rank()});
    cuda::NcclLines lines(device);
    lines.ask_while_waiting([&world] { world.check(); });
    DirectCommunicator circle(world, device, lines);
    act({device, circle, world});
    device.synchronize();
    world.barrier();  // lines end when all are done
  }
  static void expect_nothing_found() { EXPECT_EQ(join(emulated::take_reports(), "; "), ""); }
};

template <class T>
Tensor of_type(Device& device, const Shape& shape, const std::vector<float>& values) {
  std::vector<T> typed;
  for (const float value : values) typed.push_back(T(value));
  return from_host<T>(device, shape, typed);
}

Tensor of_type(Device& device, const Shape& shape, const std::vector<float>& values, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return of_type<bf16>(device, shape, values);
    case Dtype::f16:
      return of_type<f16>(device, shape, values);
    case Dtype::f64:
      return of_type<double>(device, shape, values);
    case Dtype::i64:
      return of_type<std::int64_t>(device, shape, values);
    case Dtype::i32:
      return of_type<std::int32_t>(device, shape, values);
    case Dtype::u8:
      return of_type<std::uint8_t>(device, shape, values);
    default:
      return of_type<float>(device, shape, values);
  }
}

/// Rows [count, 2] of numbers that only this rank has, behind a row that belongs to nobody.
Tensor rows_of(Device& device, int rank, std::int64_t count, Dtype dtype = Dtype::f32) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < 2 * count + 2; ++i) values.push_back(float((i + 5 * rank) % 23));
  return of_type(device, {count + 1, 2}, values, dtype).slice(0, 1, count);
}

using Said = std::vector<std::vector<double>>;

/// What a rank holds after each word, and what lies before it.
Said said_by(Communicator& circle, Device& device, Dtype dtype) {
  const int rank = circle.rank(), n = circle.size();
  const auto rows = [&](int of, std::int64_t count) { return rows_of(device, of, count, dtype); };
  const Tensor sum = rows(rank, 4), most = rows(rank, 5), whole = rows(rank, n), mine = rows(rank, 1),
               part = rows(rank, 1), told = rows(rank, 2), got = rows(rank, 1),
               in = rows(rank, n * (n + 1) / 2), out = rows(9, n * (rank + 1));
  std::vector<std::int64_t> to, from(std::size_t(n), rank + 1);
  for (int r = 0; r < n; ++r) to.push_back(r + 1);
  Pending reduced = circle.all_reduce(sum, Reduce::sum);
  Pending largest = circle.all_reduce(most, Reduce::max);
  Pending scattered = circle.reduce_scatter(part, rows(rank, n));
  circle.all_gather(whole, mine).wait();
  circle.broadcast(told, 1).wait();
  circle.all_to_all(out, in, to, from).wait();
  Pending sent = circle.send(mine, (rank + 1) % n, 5);
  circle.recv(got, (rank + n - 1) % n, 5).wait();
  sent.wait();
  scattered.wait();
  largest.wait();
  reduced.wait();
  Said said;
  for (const Tensor* x : {&sum, &most, &part, &whole, &told, &out, &got}) {
    said.push_back(numbers(*x));
    said.push_back(numbers(Tensor(x->storage(), {2}, dtype)));
  }
  return said;
}

TEST_F(GpuLines, say_what_hosts_say_of_every_type_in_every_order) {
  for (const unsigned pace : paces)
    for (const int ranks : {2, 3})
      on_ranks(ranks, pace, [](const Rank& rank) {
        PlainDevice plain;
        for (const Dtype dtype :
             {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::i64, Dtype::i32, Dtype::u8})
          EXPECT_EQ(said_by(rank.circle, rank.device, dtype), said_by(rank.world, plain, dtype)) << dtype;
        const auto other = rank.circle.split(0, -rank.world.rank());
        const auto expected = rank.world.split(0, -rank.world.rank());
        EXPECT_EQ(said_by(*other, rank.device, Dtype::f32), said_by(*expected, plain, Dtype::f32));
        EXPECT_EQ(rank.circle.split(rank.world.rank(), 0)->size(), 1);
      });
  expect_nothing_found();
}

// As processes do: the names of NCCL's circles come over TCP, and so do the words that hosts have to say.
TEST_F(GpuLines, open_among_ranks_that_meet_over_tcp) {
  emulated::set_cards({.count = 3});
  const weft::testing::Door door;
  const auto said = weft::testing::run_over_tcp(door, 3, [](Communicator& world) {
    on_its_gpu(world, [](const Rank& rank) {
      PlainDevice plain;
      EXPECT_EQ(said_by(rank.circle, rank.device, Dtype::bf16), said_by(rank.world, plain, Dtype::bf16));
      const auto other = rank.circle.split(rank.world.rank() % 2, -rank.world.rank());
      EXPECT_EQ(other->size(), rank.world.rank() % 2 == 0 ? 2 : 1);
      const Tensor x = rows_of(rank.device, rank.world.rank() / 2, 2);
      other->all_reduce(x, Reduce::max).wait();
      const int most = rank.world.rank() % 2 == 0 ? 1 : 0;
      EXPECT_EQ(numbers(x), numbers(rows_of(rank.device, most, 2)));
    });
  });
  EXPECT_THAT(said, ::testing::Each(""));
  expect_nothing_found();
}

// 1 and two halves of its last digit: rounded at every rank the halves are lost.
TEST_F(GpuLines, round_numbers_of_16_bits_once) {
  on_ranks(3, emulated::lazy, [](const Rank& rank) {
    const Tensor x = of_type(rank.device, {1}, {rank.world.rank() == 0 ? 1.0F : 1.0F / 256}, Dtype::bf16);
    rank.circle.all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(numbers(x), (std::vector<double>{1 + 1.0 / 128}));
  });
  expect_nothing_found();
}

/// Numbers of which any two sums in another order have other bits, soon.
Tensor uneven(Device& device, int rank, std::int64_t count, Dtype dtype) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(1.0F / float(3 + (i * 7 + rank * 13) % 29));
  return of_type(device, {count}, values, dtype);
}

/// Sums of all ranks' numbers, and the part of them that falls to this one.
Said sums_by(Communicator& circle, Device& device, Dtype dtype) {
  const int n = circle.size();
  const Tensor whole = uneven(device, circle.rank(), 53, dtype), part = uneven(device, 9, 11, dtype);
  circle.all_reduce(whole, Reduce::sum).wait();
  circle.reduce_scatter(part, uneven(device, circle.rank(), 11 * n, dtype)).wait();
  return {numbers(whole), numbers(part)};
}

// Seven are no power of two: the tree's first half has one more.
TEST_F(GpuLines, add_as_the_trees_of_hosts_where_that_is_asked_and_numbers_of_16_bits_everywhere) {
  for (const int ranks : {2, 5, 7, 8})
    on_ranks(ranks, emulated::eager, [](const Rank& rank) {
      PlainDevice plain;
      cuda::NcclLines lines(rank.device);
      DirectCommunicator trees(rank.world, rank.device, lines, DirectCommunicator::Sums::trees);
      EXPECT_TRUE(trees.adds_as_trees());
      EXPECT_FALSE(rank.circle.adds_as_trees());
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64})
        EXPECT_EQ(sums_by(trees, rank.device, dtype), sums_by(rank.world, plain, dtype)) << dtype;
      for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
        EXPECT_EQ(sums_by(rank.circle, rank.device, dtype), sums_by(rank.world, plain, dtype)) << dtype;
      EXPECT_EQ(said_by(trees, rank.device, Dtype::i64), said_by(rank.world, plain, Dtype::i64));
      EXPECT_TRUE(trees.split(0, rank.world.rank())->adds_as_trees());
      rank.device.synchronize();
      rank.world.barrier();
    });
  expect_nothing_found();
}

// Pipelines send both ways before they read, and a ring passes two things on.
TEST_F(GpuLines, carry_letters_both_ways_at_once) {
  for (const unsigned pace : paces)
    for (const int ranks : {2, 3, 4})
      on_ranks(ranks, pace, [](const Rank& rank) {
        const int n = rank.world.size(), me = rank.world.rank(), next = (me + 1) % n,
                  before = (me + n - 1) % n;
        const auto letter = [&](int from, int number) { return rows_of(rank.device, 3 * from + number, 2); };
        std::vector<Pending> sent;
        for (const int number : {0, 1}) {
          sent.push_back(rank.circle.send(letter(me, number), next, number));
          sent.push_back(rank.circle.send(letter(me, number + 7), before, number));
        }
        for (const int number : {0, 1}) {
          const Tensor a = letter(40, 0), b = letter(41, 0);
          rank.circle.recv(a, before, number).wait();
          rank.circle.recv(b, next, number).wait();
          EXPECT_EQ(numbers(a), numbers(letter(before, number)));
          EXPECT_EQ(numbers(b), numbers(letter(next, number + 7)));
        }
        for (Pending& one : sent) one.wait();
      });
  expect_nothing_found();
}

TEST_F(GpuLines, leave_the_hosts_their_own_tensors_and_say_nothing_of_nothing) {
  on_ranks(2, emulated::lazy, [](const Rank& rank) {
    PlainDevice host;
    const Tensor x = from_host<float>(host, {2}, std::vector<float>{1, float(rank.world.rank())});
    rank.circle.all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(to_host<float>(x), (std::vector<float>{2, 1}));
    const Tensor none = empty(rank.device, {0, 2});
    rank.circle.all_reduce(none, Reduce::max).wait();
    rank.circle.broadcast(none, 0).wait();
    rank.circle.all_gather(none, none).wait();
    rank.circle.reduce_scatter(none, none).wait();
  });
  expect_nothing_found();
}

TEST_F(GpuLines, hold_the_device_and_not_the_host) {
  on_ranks(2, emulated::lazy, [](const Rank& rank) {
    const Tensor x = rows_of(rank.device, 1, 4);
    rank.circle.all_reduce(x, Reduce::sum).wait();  // opens the line
    rank.device.synchronize();
    rank.world.barrier();
    const auto before = emulated::meter().host_waits;
    rank.world.barrier();
    for (int i = 0; i < 3; ++i) rank.circle.all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(emulated::meter().host_waits, before);
    rank.world.barrier();
  });
  expect_nothing_found();
}

TEST_F(GpuLines, ask_for_no_fresh_memory_in_a_steady_state) {
  on_ranks(2, emulated::lazy, [](const Rank& rank) {
    const Tensor x = rows_of(rank.device, 1, 40, Dtype::bf16),
                 part = rows_of(rank.device, 1, 20, Dtype::bf16);
    for (int i = 0; i < 3; ++i) {
      rank.circle.all_reduce(x, Reduce::sum).wait();
      rank.circle.reduce_scatter(part, x).wait();
      rank.device.forbid_fresh_memory(true);
    }
    rank.device.forbid_fresh_memory(false);
  });
  expect_nothing_found();
}

/// One that nobody sees to.
struct BareLine {
  BareLine(CudaDevice& device, Communicator& world)
      : lines(device),
        line(lines.open(world.tell_all(lines.fresh_name()).front(),
                        {.rank = world.rank(), .size = world.size()})) {}
  cuda::NcclLines lines;
  std::unique_ptr<DeviceLine> line;
};

// The tensor is written by a kernel of the device's stream, which the line's knows nothing of.
TEST_F(GpuLines, that_do_not_follow_their_device_are_found) {
  on_ranks(2, emulated::lazy, [](const Rank& rank) {
    const BareLine bare(rank.device, rank.world);
    DeviceLine* const line = bare.line.get();
    const Tensor x = rows_of(rank.device, 0, 4);
    rank.device.kernels().scale(x, 2);
    auto* at = x.storage()->data();
    line->all_reduce({at, at, x.elements(), Dtype::f32});
    line->hold_device(line->mark());
    rank.device.synchronize();
    rank.world.barrier();
  });
  EXPECT_THAT(emulated::take_reports(), ::testing::Contains(HasSubstr("has written")));
}

TEST_F(GpuLines, that_do_not_hold_their_device_are_found) {
  on_ranks(2, emulated::lazy, [](const Rank& rank) {
    const BareLine bare(rank.device, rank.world);
    DeviceLine* const line = bare.line.get();
    const Tensor x = rows_of(rank.device, 0, 4);
    auto* at = x.storage()->data();
    line->follow_device();
    line->all_reduce({at, at, x.elements(), Dtype::f32});
    rank.device.kernels().scale(x, 2);
    rank.device.synchronize();
    rank.world.barrier();
    line->hold_device(line->mark());
    rank.device.synchronize();
    rank.world.barrier();
  });
  EXPECT_THAT(emulated::take_reports(), ::testing::Contains(HasSubstr("has written")));
}

TEST_F(GpuLines, refuse_letters_to_those_who_are_no_neighbours) {
  on_ranks(4, emulated::lazy, [](const Rank& rank) {
    const Tensor x = rows_of(rank.device, 0, 1);
    const int me = rank.world.rank();
    EXPECT_EQ(refused([&] { (void)rank.circle.send(x, (me + 2) % 4, 1); }),
              text("send: rank ", me, " to rank ", (me + 2) % 4,
                   " of 4: by NCCL only neighbours in a circle send each other letters"));
  });
}

TEST_F(GpuLines, find_a_rank_that_opens_another_line) {
  const std::string said = refused([] {
    on_ranks(2, emulated::lazy, [](const Rank& rank) {
      const Tensor x = rows_of(rank.device, 0, 2);
      if (rank.world.rank() == 0)
        rank.circle.all_reduce(x, Reduce::sum).wait();
      else
        rank.circle.send(x, 0, 1).wait();
    });
  });
  EXPECT_THAT(said, HasSubstr("opens a line for"));
}

TEST_F(GpuLines, of_two_ranks_on_one_gpu_are_refused_by_nccl) {
  const std::string said = refused([] {
    emulated::set_cards({.count = 1});
    run_as_threads(2, [&](Communicator& world) {
      CudaDevice device({.device = 0});
      cuda::NcclLines lines(device);
      DirectCommunicator circle(world, device, lines);
      circle.broadcast(rows_of(device, 0, 2), 0).wait();
    });
  });
  EXPECT_EQ(said, "NCCL: opening a circle of GPUs: invalid usage");
}

/// Rank 0 waits for numbers that wait for rank 1, which fails.
void wait_for_who_fails(Device& device, Communicator& circle, Communicator& world) {
  const Tensor x = rows_of(device, 0, 2);
  circle.all_reduce(x, Reduce::sum).wait();
  device.synchronize();
  world.barrier();
  if (world.rank() == 1) fail(Kind::data, "rank 1 has had enough");
  circle.all_reduce(x, Reduce::sum).wait();
  (void)numbers(x);
  ADD_FAILURE() << "nobody was there to add";
}

// The line is cut and rank 1's reason is what is told.
TEST_F(GpuLines, are_cut_where_a_rank_fails) {
  emulated::set_patience(20);
  const std::string said = refused([] {
    on_ranks(2, emulated::lazy,
             [](const Rank& rank) { wait_for_who_fails(rank.device, rank.circle, rank.world); });
  });
  EXPECT_EQ(said, "rank 1 has had enough");
}

TEST_F(GpuLines, are_cut_where_a_process_fails) {
  emulated::set_cards({.count = 2});
  emulated::set_patience(20);
  const weft::testing::Door door;
  const auto said = weft::testing::run_over_tcp(door, 2, [](Communicator& world) {
    on_its_gpu(world, [](const Rank& rank) { wait_for_who_fails(rank.device, rank.circle, rank.world); });
  });
  EXPECT_THAT(said[0], HasSubstr("rank 1"));
  EXPECT_EQ(said[1], "rank 1 has had enough");
}

}  // namespace
