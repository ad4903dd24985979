// Windows of states that lie in a file come and go in order, and a disk that fails ends the walk.
#include "weft/optim/shelf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/support/failing_disk.h"
#include "tests/support/late_device.h"
#include "tests/support/numbers.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/backend/open.h"
#include "weft/base/half.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/rules.h"
#include "weft/tensor/host.h"

using namespace weft;
using support::FailingDisk;
using support::TemporaryDirectory;

namespace {

using weft::testing::Late;
using weft::testing::LateDevice;

/// A processor, or what has a memory of its own and does later what it is asked for.
std::unique_ptr<Device> opened(std::optional<Late> late) {
  auto processor = open_device("cpu", {.threads = 1});
  if (!late) return processor;
  return std::make_unique<LateDevice>(std::move(processor), *late);
}

/// Seven windows over two blocks, of which both keep one tensor and the first one more.
struct Kept {
  explicit Kept(const FileSystem& files = disk(), std::optional<Late> late = {}, int rooms = 3)
      : device(opened(late)),
        shelf(*device, {.place = {.directory = folder.path(), .name = "a", .files = &files},
                        .window = 40,
                        .windows_here = rooms}) {
    for (const auto& [block, count] : {std::pair(0, 170), {1, 70}})
      shelf.add(std::size_t(block), {.at = 3, .kept = 0, .count = count});
    first = {empty(shelf.file(), {170}), empty(shelf.file(), {70})};
    second = {empty(shelf.file(), {170}), Tensor()};
    (void)shelf.keep(first);
    (void)shelf.keep(second);
  }
  /// Adds one to everything.
  void walk() {
    shelf.begin(Shelf::Walk::update);
    while (const Shelf::Window* window = shelf.next())
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        if (i == 1 && window->block == 1) continue;
        const Tensor here = shelf.here(i, window->part);
        ops::add_into(here, here, ones.slice(0, 0, window->part.count));
      }
  }
  TemporaryDirectory folder;
  std::unique_ptr<Device> device;
  Tensor ones = from_host(*device, {40}, std::vector<float>(40, 1.F));
  Shelf shelf;
  std::vector<Tensor> first, second;
};

/// Adam of some tensors, in bf16, for a few steps; its states afterwards.
std::map<std::string, std::vector<double>> trained(const Offload* offload, std::optional<Late> late = {}) {
  const auto device = opened(late);
  std::vector<std::unique_ptr<Parameter>> all;
  const Init drawn{.spread = 0.1F};
  for (const std::int64_t n : {100, 64, 333}) {
    all.push_back(std::make_unique<Parameter>(whole_parameter(std::to_string(n), {n}, drawn)));
    all.back()->decays = n > 64;
  }
  Weights weights(
      [&](const VisitParameter& visit) {
        for (const auto& p : all) visit(*p);
      },
      *device, Dtype::bf16, Weights::For::training, DataParallel{.offload = offload});
  weights.initialize(7);
  const auto rule = make_optimizer(weights, {});
  for (int step = 1; step <= 3; ++step) {
    for (const auto& p : all) ops::fill(p->grad.sum(), 0.1 * step);
    rule->update({.rate = 0.01, .ends_rate = 0.01, .decay = 0.1});
  }
  weights.publish();
  std::map<std::string, std::vector<double>> out;
  const auto take = [&](const Held& held) { out[held.name] = numbers(held.memory); };
  weights.each_master(take);
  rule->each_state(take);
  for (const auto& p : all) out[p->name + " as layers read it"] = numbers(p->value);
  return out;
}

}  // namespace

TEST(Shelf, brings_every_window_once_in_a_walk_and_keeps_what_became_of_it) {
  Kept kept;
  for (int walk = 1; walk <= 3; ++walk) {
    kept.walk();
    for (const Tensor& x : {kept.first[0], kept.first[1], kept.second[0]})
      EXPECT_EQ(to_host<float>(x), std::vector<float>(std::size_t(x.elements()), float(walk)));
  }
}

// What was walked last is the likeliest to be in memory still.
TEST(Shelf, turns_round_after_every_walk) {
  Kept kept;
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> walks(4);
  for (auto& seen : walks) {
    kept.shelf.begin(Shelf::Walk::update);
    while (const Shelf::Window* window = kept.shelf.next())
      seen.emplace_back(window->block, window->part.kept);
  }
  EXPECT_EQ(walks[0].front(), (std::pair<std::size_t, std::int64_t>(0, 0)));
  EXPECT_EQ(walks[2], walks[0]);
  EXPECT_EQ(walks[3], walks[1]);
  std::ranges::reverse(walks[1]);
  EXPECT_EQ(walks[1], walks[0]);
}

TEST(Shelf, reads_the_first_alone_where_nothing_is_updated) {
  Kept kept;
  kept.walk();
  int windows = 0;
  kept.shelf.begin(Shelf::Walk::read_first);
  while (const Shelf::Window* window = kept.shelf.next()) {
    EXPECT_EQ(numbers(kept.shelf.here(0, window->part)).back(), 1);
    ops::fill(kept.shelf.here(0, window->part), 9);  // is not written
    ++windows;
  }
  EXPECT_EQ(windows, 7);
  EXPECT_EQ(to_host<float>(kept.first[0]).front(), 1);
}

TEST(Shelf, goes_on_after_a_walk_that_was_broken_off) {
  Kept kept;
  kept.shelf.begin(Shelf::Walk::update);
  (void)kept.shelf.next();
  (void)kept.shelf.next();
  kept.walk();
  EXPECT_EQ(to_host<float>(kept.first[1]), std::vector<float>(70, 1.F));
}

// Whichever call fails, the walk ends with what the disk said.
TEST(Shelf, ends_a_walk_with_the_error_of_its_disk) {
  for (const int nth : {0, 1, 5}) {
    FailingDisk full, torn;
    Kept a(full), b(torn);
    full.writes_left = torn.reads_left = nth;
    EXPECT_NE(refused([&] {
                a.walk();
                a.walk();
              }).find("No space left on device"),
              std::string::npos)
        << nth;
    EXPECT_NE(refused([&] { b.walk(); }).find("Input/output error"), std::string::npos) << nth;
  }
}

// The last windows are written when somebody wants to read them, and it is that one who hears of it.
TEST(Shelf, tells_who_reads_what_could_not_be_written) {
  FailingDisk full;
  Kept kept(full);
  kept.walk();
  full.writes_left = 0;
  EXPECT_NE(refused([&] { (void)to_host<float>(kept.first[0]); }).find("No space left on device"),
            std::string::npos);
}

// Three rooms: the second walk begins with three windows that are here, which nobody wrote meanwhile.
TEST(Shelf, neither_writes_nor_reads_what_the_next_walk_begins_with) {
  Kept kept;
  const std::int64_t whole = 4 * (170 + 70 + 170), ends = 4 * (10 * 2 + 40 + 30), begins = 4 * 3 * 40 * 2;
  kept.walk();
  EXPECT_EQ(kept.shelf.moved().read, whole);
  kept.walk();
  EXPECT_EQ(kept.shelf.moved().read, 2 * whole - ends);
  EXPECT_EQ(to_host<float>(kept.first[0]).front(), 2);
  EXPECT_EQ(kept.shelf.moved().written, 2 * whole - ends);
  kept.walk();
  EXPECT_EQ(kept.shelf.moved().read, 3 * whole - ends - begins);
}

// Somebody else wrote there: what was here is old.
TEST(Shelf, reads_again_what_was_loaded_meanwhile) {
  Kept kept;
  kept.walk();
  const std::vector<float> loaded(170, 5.F);
  kept.shelf.file().copy_from_host(*kept.first[0].storage(), 0, loaded.data(), 170 * 4).wait();
  kept.walk();
  EXPECT_EQ(to_host<float>(kept.first[0]), std::vector<float>(170, 6.F));
  EXPECT_EQ(to_host<float>(kept.first[1]), std::vector<float>(70, 2.F));
}

// Layers do not ask the shelf.
TEST(Shelf, has_what_layers_read_in_the_file_when_a_walk_ends) {
  Kept kept;
  const std::vector<Tensor> third = {empty(kept.shelf.file(), {170}, Dtype::bf16), Tensor()};
  const std::size_t number = kept.shelf.keep(third, Shelf::ReadBy::layers);
  for (const Shelf::Walk walk : {Shelf::Walk::update, Shelf::Walk::update, Shelf::Walk::publish}) {
    const float value = float(int(walk)) + 1;
    kept.shelf.begin(walk);
    while (const Shelf::Window* window = kept.shelf.next())
      if (window->block == 0) ops::fill(kept.shelf.here(number, window->part), value);
    std::vector<bf16> seen(170);
    kept.shelf.file().read(seen.data(), *third[0].storage(), 0, 340);
    EXPECT_EQ(std::ranges::count(seen, bf16(value)), 170);
  }
}

TEST(Shelf, changes_no_bit_of_an_update) {
  const TemporaryDirectory folder;
  const auto in_memory = trained(nullptr);
  for (const double fraction : {1.0, 0.4})
    for (const int windows : {3, 4, 100}) {
      const Offload offload{.place = {.directory = folder.path(), .name = "a", .fraction = fraction},
                            .window = 48,
                            .windows_here = windows};
      EXPECT_EQ(trained(&offload), in_memory) << fraction << " and " << windows;
    }
}

// Of one room the next window waits until the one before has landed.
TEST(Shelf, sends_windows_to_a_device_with_a_memory_of_its_own) {
  for (const Late late : {Late::at_once, Late::when_waited})
    for (const int rooms : {1, 2, 3, 100}) {
      Kept kept(disk(), late, rooms);
      for (int walk = 1; walk <= 3; ++walk) kept.walk();
      kept.shelf.begin(Shelf::Walk::update);  // and is broken off, with a window on its way
      for (int i = 0; i < 3; ++i) (void)kept.shelf.next();
      kept.walk();
      for (const Tensor& x : {kept.first[0], kept.first[1], kept.second[0]})
        EXPECT_EQ(to_host<float>(x), std::vector<float>(std::size_t(x.elements()), 4.F)) << rooms;
    }
}

TEST(Shelf, changes_no_bit_of_an_update_on_such_a_device) {
  const TemporaryDirectory folder;
  const auto in_memory = trained(nullptr);
  for (const Late late : {Late::at_once, Late::when_waited})
    for (const double fraction : {1.0, 0.4})
      for (const int windows : {1, 2, 100}) {
        const Offload offload{.place = {.directory = folder.path(), .name = "a", .fraction = fraction},
                              .window = 48,
                              .windows_here = windows};
        EXPECT_EQ(trained(&offload, late), in_memory) << fraction << " and " << windows;
      }
}

TEST(Shelf, ends_a_walk_of_such_a_device_with_the_error_of_its_disk) {
  for (const int nth : {0, 1, 5}) {
    FailingDisk full;
    Kept kept(full, Late::when_waited, 2);
    full.writes_left = nth;
    EXPECT_NE(refused([&] {
                kept.walk();
                kept.walk();
              }).find("No space left on device"),
              std::string::npos)
        << nth;
  }
}

TEST(Shelf, keeps_nothing_there_that_layers_read) {
  Kept kept(disk(), Late::at_once);
  EXPECT_EQ(refused([&] { (void)kept.shelf.keep(kept.first, Shelf::ReadBy::layers); }),
            "shelf: layers of late read what lies in a file");
}

TEST(Shelf, wants_room_on_its_disk) {
  const TemporaryDirectory folder;
  const auto device = open_device("cpu", {.threads = 1});
  Shelf shelf(*device, {.place = {.directory = folder.path(), .name = "a"}});
  EXPECT_EQ(refused([&] { shelf.must_have_room(); }), "");
  const std::int64_t most = shelf.file().room() / 4 + 1024;
  const Tensor one = empty(shelf.file(), {most});
  const std::string said = refused([&] { shelf.must_have_room(); });
  EXPECT_NE(said.find("of optimizer states are to lie there"), std::string::npos) << said;
  EXPECT_NE(said.find("take another disk, or a smaller {optimizer.offload.fraction}"), std::string::npos);
}

namespace {

/// A disk that ranks fill together.
struct Shared {
  std::int64_t left = 0;
  std::vector<std::int64_t> taken;
  Offload of_a_rank(const std::filesystem::path& directory) {
    const auto take = [this](int, std::int64_t, std::int64_t bytes) {
      if (bytes > left) return ENOSPC;
      left -= bytes;
      taken.push_back(bytes);
      return 0;
    };
    return {.place = {.directory = directory, .name = "a", .take = take}};
  }
};

}  // namespace

// The first rank has written nothing yet, and the second finds no room.
TEST(Shelf, takes_its_room_from_other_ranks_reach) {
  const TemporaryDirectory folder;
  const auto device = open_device("cpu", {.threads = 1});
  Shared disk{.left = 3 * 4096};
  Shelf first(*device, disk.of_a_rank(folder.path())), second(*device, disk.of_a_rank(folder.path()));
  const Tensor a = empty(first.file(), {2048}), b = empty(second.file(), {2048});
  EXPECT_EQ(refused([&] { first.must_have_room(); }), "");
  EXPECT_NE(refused([&] { second.must_have_room(); }).find("8.0 KiB of optimizer states are to lie there"),
            std::string::npos);
  Offload both = disk.of_a_rank(folder.path());
  both.weights = true;
  Shelf third(*device, std::move(both));
  const Tensor c = empty(third.file(), {2048});
  EXPECT_NE(
      refused([&] { third.must_have_room(); }).find("8.0 KiB of weights and optimizer states are to lie"),
      std::string::npos);
}

// Masters are reserved before they are written, states when they are made, and nothing twice.
TEST(Shelf, takes_room_for_masters_before_they_are_filled) {
  const TemporaryDirectory folder;
  const auto device = open_device("cpu", {.threads = 1});
  Shared disk{.left = 1 << 20};
  const Offload offload = disk.of_a_rank(folder.path());
  Parameter p = whole_parameter("p", {4096}, Init{.spread = 0.1F});
  Weights weights([&](const VisitParameter& visit) { visit(p); }, *device, Dtype::bf16,
                  Weights::For::training, DataParallel{.offload = &offload});
  EXPECT_EQ(disk.taken, std::vector<std::int64_t>{4 * 4096});
  weights.initialize(7);
  const auto rule = make_optimizer(weights, {});
  weights.shelf()->must_have_room();
  EXPECT_EQ(disk.taken, (std::vector<std::int64_t>{4 * 4096, 8 * 4096}));
}
