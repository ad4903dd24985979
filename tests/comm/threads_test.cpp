#include "weft/comm/threads.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <atomic>
#include <numeric>

#include "tests/support/plain_device.h"
#include "tests/support/refused.h"
#include "weft/tensor/host.h"

using namespace weft;
using weft::testing::PlainDevice;

namespace {

float value(int rank, std::int64_t i) { return 1.F / float(1 + (rank * 37 + int(i) * 11) % 101); }

Tensor filled(Device& device, int rank, std::int64_t n) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(value(rank, i));
  return from_host(device, {n}, values);
}

/// The balanced tree, by its definition.
float tree(int first, int last, std::int64_t i) {
  if (last - first == 1) return value(first, i);
  const int middle = first + (last - first + 1) / 2;
  return tree(first, middle, i) + tree(middle, last, i);
}

}  // namespace

class Ranks : public ::testing::TestWithParam<int> {};

TEST_P(Ranks, add_as_a_balanced_tree_in_rank_order) {
  const int n = GetParam();
  run_as_threads(n, [n](Communicator& world) {
    PlainDevice device;
    const Tensor x = filled(device, world.rank(), 1001);
    world.all_reduce(x, Reduce::sum).wait();
    for (std::int64_t i = 0; i < 1001; i += 13) ASSERT_EQ(x.as<float>()[std::size_t(i)], tree(0, n, i));
  });
}

TEST_P(Ranks, scatter_the_same_sums_they_reduce) {
  const int n = GetParam();
  run_as_threads(n, [n](Communicator& world) {
    PlainDevice device;
    const Tensor full = filled(device, world.rank(), 64 * n);
    const Tensor shard = empty(device, {64});
    world.reduce_scatter(shard, full).wait();
    for (std::int64_t i = 0; i < 64; ++i)
      ASSERT_EQ(shard.as<float>()[std::size_t(i)], tree(0, n, 64 * world.rank() + i));
    const Tensor gathered = empty(device, {64 * n});
    world.all_gather(gathered, shard).wait();
    for (std::int64_t i = 0; i < 64 * n; ++i) ASSERT_EQ(gathered.as<float>()[std::size_t(i)], tree(0, n, i));
  });
}

TEST_P(Ranks, finish_words_in_any_order) {
  run_as_threads(GetParam(), [](Communicator& world) {
    PlainDevice device;
    const Tensor a = from_host(device, {1}, std::vector<float>{1});
    const Tensor b = from_host(device, {1}, std::vector<std::int32_t>{world.rank()});
    Pending first = world.all_reduce(a, Reduce::sum);
    Pending second = world.all_reduce(b, Reduce::max);
    if (world.rank() % 2) {
      second.wait();
      first.wait();
    } else {
      first.wait();
      second.wait();
    }
    ASSERT_EQ(a.as<float>()[0], float(world.size()));
    ASSERT_EQ(b.as<std::int32_t>()[0], world.size() - 1);
  });
}

TEST_P(Ranks, pass_messages_round_by_tag) {
  run_as_threads(GetParam(), [](Communicator& world) {
    PlainDevice device;
    const int n = world.size();
    const Tensor mine = from_host(device, {2}, std::vector<std::int32_t>{world.rank(), 7});
    const Tensor a = empty(device, {2}, Dtype::i32);
    const Tensor b = empty(device, {2}, Dtype::i32);
    Pending sent = world.send(mine, (world.rank() + 1) % n, 1);
    Pending also = world.send(mine, (world.rank() + 1) % n, 2);
    world.recv(b, (world.rank() + n - 1) % n, 2).wait();
    world.recv(a, (world.rank() + n - 1) % n, 1).wait();
    sent.wait();
    also.wait();
    ASSERT_EQ(a.as<std::int32_t>()[0], (world.rank() + n - 1) % n);
    ASSERT_EQ(b.as<std::int32_t>()[1], 7);
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, Ranks, ::testing::Values(1, 2, 3, 4, 8, 64));

TEST(Threads, rows_go_where_they_are_addressed) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice device;
    const Tensor in = from_host(device, {3, 2}, std::vector<float>(6, float(world.rank())));
    const Tensor out = empty(device, {3, 2});
    const std::vector<std::int64_t> rows =
        world.rank() == 0 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2, 1};
    world.all_to_all(out, in, rows, rows).wait();
    EXPECT_EQ(out.as<float>()[0], 0.F);
    EXPECT_EQ(out.as<float>()[5], 1.F);
    world.broadcast(in, 1).wait();
    EXPECT_EQ(in.as<float>()[0], 1.F);
  });
}

TEST(Threads, halves_are_added_in_f32_and_rounded_once) {
  run_as_threads(4, [](Communicator& world) {
    PlainDevice device;
    // Each small term alone is lost beside 1 in bf16; their sum is not.
    const float mine = world.rank() == 0 ? 1.F : 0x1.8p-9F;
    const Tensor x = from_host(device, {1}, std::vector<bf16>{bf16(mine)});
    world.all_reduce(x, Reduce::sum).wait();
    EXPECT_EQ(float(x.as<bf16>()[0]), float(bf16(1.F + 3 * 0x1.8p-9F)));
  });
}

TEST(Threads, circles_split_by_color_and_order_by_key) {
  run_as_threads(6, [](Communicator& world) {
    const auto part = world.split(world.rank() % 2, -world.rank());
    EXPECT_EQ(part->size(), 3);
    EXPECT_EQ(part->rank(), 2 - world.rank() / 2);
    const auto again = part->split(0, part->rank());
    EXPECT_EQ(again->rank(), part->rank());
  });
}

TEST(Threads, a_failing_rank_wakes_the_others_and_its_sentence_is_the_one_told) {
  EXPECT_EQ(refused([] {
              run_as_threads(4, [](Communicator& world) {
                const auto half = world.split(world.rank() % 2, world.rank());
                if (world.rank() == 2) fail(Kind::data, "shard 2 is missing");
                half->barrier();
                world.barrier();
              });
            }),
            "shard 2 is missing");
}

TEST(Threads, a_rank_that_fails_does_not_wait_for_what_it_asked_for) {
  EXPECT_EQ(refused([] {
              run_as_threads(2, [](Communicator& world) {
                PlainDevice device;
                const Tensor x = filled(device, 0, 8);
                // Rank 1 would send only after it heard of rank 0, which fails with its receive still open.
                auto mail = world.recv(x, 1 - world.rank(), world.rank());
                if (world.rank() == 0) fail(Kind::data, "shard 0 is missing");
                mail.wait();
                world.send(x, 0, 0).wait();
              });
            }),
            "shard 0 is missing");
}

TEST(Threads, a_rank_that_fails_leaves_no_reader_of_its_memory) {
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(refused([] {
                run_as_threads(4, [](Communicator& world) {
                  PlainDevice device;
                  const Tensor x = filled(device, 0, 1 << 16);
                  auto sum = world.all_reduce(x, Reduce::sum);
                  if (world.rank() == 2) fail(Kind::data, "shard 2 is missing");
                  sum.wait();
                });
              }),
              "shard 2 is missing");
}

TEST(Threads, a_letter_never_outlives_its_senders_device) {
  EXPECT_EQ(refused([] {
              run_as_threads(2, [](Communicator& world) {
                PlainDevice device;
                const Tensor x = filled(device, 0, 8);
                auto letter = world.send(x, 1 - world.rank(), 0);
                if (world.rank() == 1) fail(Kind::data, "shard 1 is missing");
                letter.wait();
              });
            }),
            "shard 1 is missing");
}

TEST(Threads, ranks_that_disagree_are_told_about_what) {
  const std::string said = refused([] {
    run_as_threads(2, [](Communicator& world) {
      PlainDevice device;
      const Tensor x = filled(device, 0, world.rank() + 4);
      world.all_reduce(x, Reduce::sum).wait();
    });
  });
  EXPECT_TRUE(said == "rank 1 joins all_reduce of 5 f32 where others join all_reduce of 4 f32" ||
              said == "rank 0 joins all_reduce of 4 f32 where others join all_reduce of 5 f32")
      << said;
}

TEST(Threads, refuse_what_cannot_be_spoken) {
  run_as_threads(2, [](Communicator& world) {
    PlainDevice device;
    const Tensor x = filled(device, 0, 8).view({2, 4});
    EXPECT_EQ(refused([&] { (void)world.all_reduce(x.slice(1, 0, 2), Reduce::sum); }),
              "all_reduce: [2, 2] with strides [4, 1] has gaps; it must be contiguous");
    EXPECT_EQ(refused([&] { (void)world.all_gather(x, x); }),
              "all_gather: 2 shards of [2, 4] f32 are not [2, 4] f32");
  });
  EXPECT_EQ(refused([] { run_as_threads(0, [](Communicator&) {}); }),
            "ranks: 0 thread ranks were asked for, 1 to 1024 are possible");
}
