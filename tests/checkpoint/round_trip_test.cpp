// Saved by some ranks in some cut, loaded by others in another: every element is where it belongs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <atomic>
#include <cstring>
#include <limits>

#include "tests/checkpoint/cuts.h"
#include "tests/checkpoint/faulty.h"
#include "tests/support/refused.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/save.h"
#include "weft/checkpoint/step.h"
#include "weft/comm/solo.h"
#include "weft/comm/threads.h"

using namespace weft;
using namespace weft::checkpoint;
using namespace weft::checkpoint::testing;
using support::TemporaryDirectory;
using weft::testing::PlainDevice;

namespace {

const std::vector<Global> globals{
    {"word.weight", {13, 6}, Dtype::f32},
    {"bias", {17}, Dtype::bf16},
    {"moment", {5, 4, 3}, Dtype::f64},
    {"counter", {}, Dtype::i64},
    {"wide", {3, 40}, Dtype::f16},
    {"empty", {0, 4}, Dtype::f32},
    {"bytes", {9}, Dtype::u8},
    {"ids", {2, 2, 2, 2}, Dtype::i32},
    {"\xc3\xa9t\xc3\xa9", {4}, Dtype::f32},
};
constexpr const char* facts = R"({"step": 7})";

void save_cut(const std::filesystem::path& path, int ranks, unsigned seed) {
  const auto cuts = cut_over_ranks(globals, ranks, seed);
  run_as_threads(ranks, [&](Communicator& world) {
    Holding mine;
    hold(mine, globals, cuts[std::size_t(world.rank())]);
    for (const Named& named : mine.named) fill(global_of(globals, named.name), named);
    save(path, mine.named, facts, world, Swift());
  });
}

std::int64_t wrong_after_load(const std::filesystem::path& path, int ranks, unsigned seed) {
  const auto cuts = cut_over_ranks(globals, ranks, seed);
  std::atomic<std::int64_t> out{0};
  run_as_threads(ranks, [&](Communicator& world) {
    Holding mine;
    hold(mine, globals, cuts[std::size_t(world.rank())]);
    if (load(path, mine.named, world) != facts) ++out;
    for (const Named& named : mine.named) out += wrong(global_of(globals, named.name), named);
  });
  return out;
}

template <class T>
void comes_back(const std::vector<T>& values) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  const auto n = std::int64_t(values.size());
  const std::vector<Named> before{whole("x", from_host(device, {n}, values))};
  save(folder.path(), before, "{}", world);
  const std::vector<Named> after{whole("x", empty(device, {n}, dtype_of<T>))};
  EXPECT_EQ(load(folder.path(), after, world), "{}");
  const auto bits = to_host<T>(after[0].tensor);
  EXPECT_EQ(std::memcmp(bits.data(), values.data(), values.size() * sizeof(T)), 0);
}

}  // namespace

TEST(RoundTrip, gives_the_bits_back_in_every_type) {
  comes_back<float>({1.5F, -0.F, 1e-45F, std::numeric_limits<float>::quiet_NaN()});
  comes_back<bf16>({bf16(1.F), bf16(-3.F)});
  comes_back<double>({0.1, -1e300});
  comes_back<std::int64_t>({-1, std::numeric_limits<std::int64_t>::max()});
}

TEST(RoundTrip, goes_from_any_cut_to_any_cut) {
  EXPECT_TRUE(rc::check("saved over m ranks, loaded over n", [] {
    const TemporaryDirectory folder;
    const int from = 1 << *rc::gen::inRange(0, 3);
    const int to = 1 << *rc::gen::inRange(0, 3);
    save_cut(folder.path(), from, unsigned(*rc::gen::inRange(0, 1 << 20)));
    RC_ASSERT(wrong_after_load(folder.path(), to, unsigned(*rc::gen::inRange(0, 1 << 20))) == 0);
    RC_ASSERT(verify(folder.path()).tensors == std::int64_t(globals.size()));
  }));
}

TEST(RoundTrip, leaves_padding_alone) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  save(folder.path(), std::vector<Named>{whole("x", from_host<float>(device, {2}, {1, 2}))}, "{}", world);
  const Tensor memory = from_host<float>(device, {4}, {9, 9, 9, 9});
  load(folder.path(), std::vector<Named>{{"x", memory, {{{{2}, {0}, {2}}, 1}}}}, world);
  EXPECT_EQ(to_host<float>(memory), (std::vector<float>{9, 1, 2, 9}));
}

TEST(RoundTrip, cuts_a_large_box_in_blocks_by_its_rows) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  const Tensor large = empty(device, {3, block_bytes / 2}, Dtype::u8);
  std::memset(large.address(), 3, std::size_t(large.bytes()));
  save(folder.path(), std::vector<Named>{whole("x", large)}, "{}", world);
  const OpenStep step(folder.path());
  ASSERT_EQ(step.index().tensors.at("x").blocks.size(), 2U);
  const Tensor last = empty(device, {block_bytes / 2}, Dtype::u8);
  std::memset(last.address(), 0, std::size_t(last.bytes()));
  load(folder.path(), std::vector<Named>{{"x", last, {{{large.shape(), {2, 0}, {1, block_bytes / 2}}, 0}}}},
       world);
  EXPECT_EQ(last.as<std::uint8_t>().back(), 3);
}

TEST(RoundTrip, replaces_a_checkpoint_in_its_own_directory_and_leaves_nothing_behind) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  for (const float value : {1.F, 2.F, 3.F}) {
    save(folder.path(), std::vector<Named>{whole("x", from_host<float>(device, {1}, {value}))}, "{}", world);
    const Tensor x = empty(device, {1});
    load(folder.path(), std::vector<Named>{whole("x", x)}, world);
    EXPECT_EQ(number(x), value);
    const std::filesystem::directory_iterator files(folder.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 4);  // mark, index, facts, tensors
  }
}

TEST(Save, refuses_tensors_that_do_not_make_a_whole) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  const Tensor x = empty(device, {4});
  const auto saved = [&](const Shape& offset, const Shape& local, std::int64_t at = 0) {
    return refused([&] {
      save(folder.path(), std::vector<Named>{{"x", x, {{{{4}, offset, local}, at}}}}, "{}", world);
    });
  };
  EXPECT_EQ(saved({0}, {3}), "checkpoint: x [4]: 3 of its 4 elements are held");
  EXPECT_EQ(saved({3}, {3}), "checkpoint: x: a box [3] at [3] is not within [4]");
  EXPECT_EQ(saved({0}, {4}, 1),
            "checkpoint: x: a box [4] from element 1 does not fit the 4 elements of its memory");
  const std::vector<Named> twice{{"x", x, {{{{4}, {0}, {3}}, 0}, {{{4}, {2}, {2}}, 2}}}};
  EXPECT_EQ(refused([&] { save(folder.path(), twice, "{}", world); }),
            "checkpoint: x: the blocks [3] at [0] and [2] at [2] overlap");
  const std::vector<Named> torn{{"x", x, {{{{4}, {0}, {2}}, 0}, {{{5}, {2}, {2}}, 2}}}};
  EXPECT_EQ(refused([&] { save(folder.path(), torn, "{}", world); }),
            "checkpoint: x is said to be [4] and [5]");
  EXPECT_EQ(refused([&] { save(folder.path(), {}, "3", world); }),
            "checkpoint: the facts of the run: its JSON is number, expected an object");
  const std::vector<Named> gaps{whole("x", empty(device, {4, 4}).permute({1, 0}))};
  EXPECT_EQ(refused([&] { save(folder.path(), gaps, "{}", world); }),
            "checkpoint: x [4, 4] does not lie in order");
}

TEST(Save, fails_on_every_rank_and_lets_the_run_go_on) {
  const TemporaryDirectory folder;
  run_as_threads(4, [&](Communicator& world) {
    PlainDevice device;
    const int n = world.rank();
    const std::vector<Named> mine{
        {"x", empty(device, {1}, n == 2 ? Dtype::f64 : Dtype::f32), {{{{4}, {n}, {1}}, 0}}}};
    EXPECT_EQ(refused([&] { save(folder.path(), mine, "{}", world); }),
              "rank 0: checkpoint: x is f32 [4] on one rank and f64 [4] on another");
    world.barrier();
  });
}

TEST(Load, names_what_is_missing_or_of_another_kind) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  save(folder.path(), std::vector<Named>{whole("x", empty(device, {4}))}, "{}", world);
  const auto loaded = [&](const std::string& name, const Shape& shape, Dtype dtype) {
    return refused(
        [&] { load(folder.path(), std::vector<Named>{whole(name, empty(device, shape, dtype))}, world); });
  };
  const std::string at = folder.path().string();
  EXPECT_EQ(loaded("y", {4}, Dtype::f32), at + ": holds no y among its 1 tensors");
  EXPECT_EQ(loaded("x", {5}, Dtype::f32), at + ": holds x as f32 [4], and f32 [5] is wanted");
  EXPECT_EQ(loaded("x", {4}, Dtype::bf16), at + ": holds x as f32 [4], and bf16 [4] is wanted");
  EXPECT_EQ(refused([&] { load(folder / "none", {}, world); }),
            at + "/none: no complete checkpoint, its mark COMPLETE is missing");
}

TEST(Load, rounds_a_float_to_another_width_where_that_is_allowed) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  const std::vector<float> values{1.F, 1.00390625F, -3.1415927F, 70000.F};
  save(folder.path(), std::vector<Named>{whole("x", from_host<float>(device, {4}, values))}, "{}", world);
  const Tensor narrow = empty(device, {4}, Dtype::bf16);
  load(folder.path(), std::vector<Named>{whole("x", narrow)}, world, Types::may_differ);
  EXPECT_EQ(numbers(narrow), (std::vector<double>{1, 1, -3.140625, 70144}));
  EXPECT_EQ(refused([&] {
              load(folder.path(), std::vector<Named>{whole("x", empty(device, {4}, Dtype::i32))}, world,
                   Types::may_differ);
            }),
            folder.path().string() + ": holds x as f32 [4], and i32 [4] is wanted");
}

TEST(Load, widens_a_half_without_changing_it) {
  const TemporaryDirectory folder;
  PlainDevice device;
  SoloCommunicator world;
  const std::vector<bf16> values{bf16(0.1F), bf16(-2.5F)};
  save(folder.path(), std::vector<Named>{whole("x", from_host<bf16>(device, {2}, values))}, "{}", world);
  const Tensor wide = empty(device, {2});
  load(folder.path(), std::vector<Named>{whole("x", wide)}, world, Types::may_differ);
  EXPECT_EQ(to_host<float>(wide), (std::vector<float>{float(values[0]), -2.5F}));
}

// Written by version 1: two ranks, each half of the rows of "w" and one of them all of "b". Every later
// version must read it.
TEST(Load, reads_the_golden_checkpoint_of_version_1) {
  const auto root = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/checkpoint/version_1";
  PlainDevice device;
  SoloCommunicator world;
  const Tensor w = empty(device, {4, 3});
  const Tensor b = empty(device, {2}, Dtype::i64);
  std::vector<std::string> notices;
  const StepDirectory step = latest(root, notices);
  EXPECT_EQ(step.step, 3);
  EXPECT_EQ(load(step.path, std::vector<Named>{whole("w", w), whole("b", b)}, world), "{\"step\": 3}");
  EXPECT_EQ(to_host<float>(w), (std::vector<float>{0, .5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5}));
  EXPECT_EQ(to_host<std::int64_t>(b), (std::vector<std::int64_t>{-1, 1LL << 40}));
}
