// Memory that comes back, is merged, counted, and refused with reasons.
#include "weft/backend/pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "tests/backend/heap.h"
#include "tests/support/refused.h"
#include "weft/backend/cpu/device.h"
#include "weft/backend/meta/device.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

constexpr std::int64_t mib = 1 << 20;

TEST(Pool, a_freed_block_is_used_again) {
  CpuDevice device;
  const std::byte* first = nullptr;
  {
    const StorageRef block = device.allocate(3 * mib, Use::activations);
    first = block->data();
  }
  const std::int64_t fresh = device.memory().fresh_blocks;
  EXPECT_EQ(device.allocate(3 * mib, Use::gradients)->data(), first);
  EXPECT_EQ(device.memory().fresh_blocks, fresh);
}

TEST(Pool, blocks_start_at_multiples_of_64_and_do_not_overlap) {
  CpuDevice device;
  std::vector<StorageRef> held;
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i)
    held.push_back(device.allocate(std::int64_t(random() % 60000), Use::activations));
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (const StorageRef& block : held) {
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(block->data()) % 64, 0U);
    spans.emplace_back(block->data(), block->data() + std::max<std::int64_t>(block->bytes(), 1));
  }
  std::ranges::sort(spans);
  for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].second, spans[i].first);
}

TEST(Pool, counts_by_use_in_multiples_of_64_and_keeps_peaks) {
  CpuDevice device;
  const StorageRef weights = device.allocate(1, Use::weights);
  { const StorageRef passing = device.allocate(65, Use::activations); }
  const MemoryMeter meter = device.memory();
  EXPECT_EQ(meter.now[std::size_t(Use::weights)], 64);
  EXPECT_EQ(meter.now[std::size_t(Use::activations)], 0);
  EXPECT_EQ(meter.peak[std::size_t(Use::activations)], 128);
  EXPECT_EQ(meter.total, 64);
  EXPECT_EQ(meter.total_peak, 192);
  device.forget_peaks();
  EXPECT_EQ(device.memory().total_peak, 64);
}

TEST(Pool, neighbours_that_are_free_become_one) {
  CpuDevice device;
  {
    std::vector<StorageRef> parts;
    for (int i = 0; i < 64; ++i) parts.push_back(device.allocate(mib, Use::activations));
  }
  const std::int64_t fresh = device.memory().fresh_blocks;
  const StorageRef whole = device.allocate(64 * mib, Use::activations);
  EXPECT_EQ(device.memory().fresh_blocks, fresh);
  EXPECT_EQ(device.reserved(), 64 * mib);
}

/// Like training: weights stay, activations pile up and go in reverse, workspaces come and go between.
std::int64_t train_like(Device& device, int steps) {
  std::mt19937 random(11);
  std::vector<StorageRef> weights;
  for (int i = 0; i < 40; ++i) weights.push_back(device.allocate(random() % (4 * mib), Use::weights));
  for (int step = 0; step < steps; ++step) {
    std::mt19937 sizes(5);
    std::vector<StorageRef> saved;
    for (int layer = 0; layer < 60; ++layer) {
      const StorageRef workspace = device.allocate(sizes() % (8 * mib), Use::workspace);
      saved.push_back(device.allocate(sizes() % (6 * mib), Use::activations));
    }
    while (!saved.empty()) {
      const StorageRef dx = device.allocate(saved.back()->bytes(), Use::activations);
      saved.pop_back();
      const StorageRef workspace = device.allocate(sizes() % (8 * mib), Use::workspace);
    }
  }
  return device.memory().total_peak;
}

TEST(Pool, what_is_reserved_stays_near_the_peak) {
  CpuDevice device;
  const std::int64_t peak = train_like(device, 5);
  EXPECT_LE(double(device.reserved()), 1.08 * double(peak));
  RecordProperty("reserved over peak", std::to_string(double(device.reserved()) / double(peak)));
}

TEST(Pool, a_repeated_step_needs_nothing_fresh) {
  CpuDevice device;
  train_like(device, 2);
  device.forbid_fresh_memory(true);
  EXPECT_NO_THROW(train_like(device, 3));
}

TEST(Pool, uses_no_heap_once_it_is_warm) {
  CpuDevice device;
  std::vector<StorageRef> held(64);
  const auto step = [&] {
    for (int i = 0; i < 2000; ++i)
      held[std::size_t(i * 7 % 64)] = device.allocate(std::int64_t(i) * 997 % 300000, Use::activations);
  };
  step();
  const std::int64_t before = heap_calls();
  step();
  EXPECT_EQ(heap_calls(), before);
}

TEST(Pool, counting_takes_the_same_steps_as_holding) {
  CpuDevice real;
  MetaDevice counted;
  EXPECT_EQ(train_like(real, 3), train_like(counted, 3));
  EXPECT_EQ(real.memory(), counted.memory());
  EXPECT_EQ(real.reserved(), counted.reserved());
}

TEST(Pool, refuses_fresh_memory_in_the_steady_state) {
  CpuDevice device;
  const StorageRef weights = device.allocate(2 * mib, Use::weights);
  device.forbid_fresh_memory(true);
  EXPECT_EQ(refused([&] { device.allocate(3 * mib, Use::workspace); }),
            "cpu: the steady state was declared and no free block fits: 3.0 MiB for workspace asked for, 2.0 "
            "MiB held (weights 2.0 MiB); every step must ask for what the first one did");
  device.forbid_fresh_memory(false);
  EXPECT_NO_THROW(device.allocate(3 * mib, Use::workspace));
}

TEST(Pool, says_who_asked_for_how_much_when_memory_is_out) {
  CpuDevice device({.threads = 1, .memory_limit = 8 * mib});
  const StorageRef weights = device.allocate(5 * mib, Use::weights);
  const StorageRef activations = device.allocate(2 * mib, Use::activations);
  EXPECT_EQ(
      refused([&] { device.allocate(3 * mib / 2, Use::gradients); }),
      "cpu: out of memory: 1.5 MiB for gradients asked for, 7.0 MiB of the 8.0 MiB allowed held (weights "
      "5.0 MiB, activations 2.0 MiB); lower {batch.micro}, or {eval.micro} if it was evaluating, "
      "recompute activations or cut the model over more ranks");
  EXPECT_EQ(device.memory().total, 7 * mib);
}

TEST(Pool, says_the_same_when_the_system_has_no_room) {
  CpuDevice device;
  EXPECT_EQ(refused([&] { device.allocate(std::int64_t(1) << 52, Use::optimizer); }),
            "cpu: out of memory: 4.0 PiB for optimizer asked for, 0 B held; lower {batch.micro}, or "
            "{eval.micro} if it was evaluating, recompute activations or cut the model over more ranks");
}

/// What counts against a limit on data, in bytes.
std::int64_t data_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoll(line.substr(7)) * 1024;
  return -1;
}

/// As `ulimit -d`, so much above what there is.
class DataLimit {
 public:
  explicit DataLimit(std::int64_t more) {
    ::getrlimit(RLIMIT_DATA, &before_);
    asked_ = {.rlim_cur = rlim_t(data_of_this_process() + more), .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_DATA, &asked_);
  }
  ~DataLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;
  /// An emulator of another processor says yes to any, and sets none.
  bool holds() const {
    rlimit now{};
    ::getrlimit(RLIMIT_DATA, &now);
    return now.rlim_cur == asked_.rlim_cur;
  }

 private:
  rlimit before_{}, asked_{};
};

// A segment is a gibibyte of address space, of which only what is used is memory.
TEST(Pool, counts_against_a_limit_on_data_with_what_is_used_alone) {
  CpuDevice device;
  const DataLimit limit(64 * mib);
  if (!limit.holds()) GTEST_SKIP() << "nothing here keeps a limit on data";
  const StorageRef small = device.allocate(100, Use::weights);
  const StorageRef large = device.allocate(40 * mib, Use::weights);
  std::memset(large->data(), 1, std::size_t(large->bytes()));
  EXPECT_NE(refused([&] { device.allocate(64 * mib, Use::gradients); }).find("cpu: out of memory: 64.0 MiB"),
            std::string::npos);
  const StorageRef more = device.allocate(8 * mib, Use::gradients);  // there is room for less
  std::memset(more->data(), 1, std::size_t(more->bytes()));
}

TEST(Pool, tensors_may_be_dropped_by_another_thread) {
  CpuDevice device;
  for (int round = 0; round < 200; ++round) {
    Tensor x = empty(device, {100 + round, 7});
    std::jthread([dropped = std::move(x)] {});
    const Tensor y = empty(device, {31, 64});
  }
  EXPECT_EQ(device.memory().total, 0);
}

TEST(Pool, two_threads_take_and_give_at_once) {
  CpuDevice device;
  const auto work = [&device](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<StorageRef> held(16);
    for (int i = 0; i < 5000; ++i)
      held[random() % held.size()] = device.allocate(std::int64_t(random() % 100000), Use::communication);
  };
  {
    const std::jthread one(work, 1U);
    const std::jthread two(work, 2U);
  }
  EXPECT_EQ(device.memory().total, 0);
}

}  // namespace
}  // namespace weft
