// A save that fails or dies at any call of the file layer: the previous checkpoint loads, bits equal.
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>

#include "tests/checkpoint/cuts.h"
#include "tests/checkpoint/faulty.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/checkpoint/keep.h"
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

// Two ranks, a row each of value; returns what rank 0 was told.
std::string save_step(const std::filesystem::path& root, std::int64_t step, float value,
                      const FileSystem& files = Swift()) {
  std::string said;
  run_as_threads(2, [&](Communicator& world) {
    PlainDevice device;
    const Tensor row = from_host<float>(device, {3}, {value, value, value});
    const std::vector<Named> mine{{"w", row, {{{{2, 3}, {world.rank(), 0}, {1, 3}}, 0}}}};
    const std::vector<Attached> tokenizer{{"tokenizer", "vocab.json", text("{\"", value, "\": 0}")}};
    const std::string mine_said = refused([&] {
      save(step_directory(root, step), mine, {R"({"a": 1})", tokenizer}, world, files);
    });
    if (world.rank() == 0) said = mine_said;
  });
  return said;
}

// The newest step, which must load, and the value it holds.
std::pair<std::int64_t, float> loads(const std::filesystem::path& root) {
  PlainDevice device;
  SoloCommunicator world;
  const Tensor w = empty(device, {2, 3});
  std::vector<std::string> notices;
  const StepDirectory newest = latest(root, notices);
  load(newest.path, std::vector<Named>{whole("w", w)}, world);
  const auto values = to_host<float>(w);
  EXPECT_EQ(values, std::vector<float>(6, values[0]));
  EXPECT_EQ(read_file(OpenStep(newest.path).attached("tokenizer", "vocab.json")),
            text("{\"", values[0], "\": 0}"));
  return {newest.step, values[0]};
}

int calls_of_a_save(const std::filesystem::path& root) {
  const Faulty none(1 << 30, Manner::once);
  EXPECT_EQ(save_step(root, 1, 1, none), "");
  return none.calls();
}

class Faults : public ::testing::TestWithParam<Manner> {};

}  // namespace

TEST_P(Faults, at_any_call_leave_the_previous_checkpoint_intact) {
  const TemporaryDirectory counting;
  const int calls = calls_of_a_save(counting.path());
  ASSERT_GT(calls, 30);
  for (int nth = 1; nth <= calls; ++nth) {
    const TemporaryDirectory folder;
    ASSERT_EQ(save_step(folder.path(), 100, 1), "");
    const Faulty files(nth, GetParam());
    const std::string said = save_step(folder.path(), 200, 2, files);
    ASSERT_TRUE(files.fired());
    const auto now = loads(folder.path());
    if (said.empty())
      ASSERT_EQ(now, std::pair(std::int64_t{200}, 2.F))
          << "call " << nth << ": a save that returns has saved";
    else
      ASSERT_TRUE(now == std::pair(std::int64_t{100}, 1.F) || now == std::pair(std::int64_t{200}, 2.F))
          << nth;
    ASSERT_EQ(save_step(folder.path(), 200, 3), "") << "a save over what is left of one";
    ASSERT_EQ(loads(folder.path()), std::pair(std::int64_t{200}, 3.F));
  }
}

TEST_P(Faults, at_any_call_leave_the_checkpoint_that_is_being_replaced_intact) {
  const TemporaryDirectory counting;
  const int calls = calls_of_a_save(counting.path());
  for (int nth = 1; nth <= calls; ++nth) {
    const TemporaryDirectory folder;
    ASSERT_EQ(save_step(folder.path(), 100, 1), "");
    const Faulty files(nth, GetParam());
    const std::string said = save_step(folder.path(), 100, 2, files);
    const auto [step, value] = loads(folder.path());
    ASSERT_EQ(step, 100);
    ASSERT_TRUE(value == 2 || (value == 1 && !said.empty())) << "call " << nth << ": " << said;
  }
}

TEST(Save, that_replaces_a_step_leaves_one_folder_of_its_files) {
  const TemporaryDirectory folder;
  const auto step = step_directory(folder.path(), 100);
  save_step(folder.path(), 100, 1);
  save_step(folder.path(), 100, 2);
  EXPECT_FALSE(std::filesystem::exists(step / "tokenizer"));
  EXPECT_EQ(OpenStep(step).attached("tokenizer", "vocab.json"), step / "tokenizer.1/vocab.json");
  save_step(folder.path(), 100, 3);
  EXPECT_FALSE(std::filesystem::exists(step / "tokenizer.1"));
  EXPECT_EQ(OpenStep(step).attached("tokenizer", "merges.txt"), "");
}

INSTANTIATE_TEST_SUITE_P(Manners, Faults, ::testing::Values(Manner::once, Manner::for_good),
                         [](const auto& of) { return of.param == Manner::once ? "once" : "for_good"; });

TEST(Faults, are_told_to_every_rank_with_the_file_and_the_rank_that_had_them) {
  const TemporaryDirectory folder;
  class Full final : public Swift {
   public:
    int rename(const char* from, const char* to) const override {
      if (std::string_view(to).ends_with("rank_00001.safetensors")) return errno = ENOSPC, -1;
      return FileSystem::rename(from, to);
    }
  };
  const std::string file = (step_directory(folder.path(), 5) / "rank_00001.safetensors").string();
  EXPECT_EQ(save_step(folder.path(), 5, 1, Full()),
            "rank 1: cannot rename to " + file + ": No space left on device");
}

namespace {

// What a power cut would leave: content that was not synced, and names whose directory was not synced, are
// gone.
class Power final : public Swift {
 public:
  int open(const char* path, int flags, unsigned mode) const override {
    const int fd = FileSystem::open(path, flags, mode);
    const std::scoped_lock lock(mutex_);
    names_[fd] = path;
    return fd;
  }
  int sync(int fd) const override {
    const std::scoped_lock lock(mutex_);
    const std::string name = names_[fd];
    for (auto it = renamed_.begin(); it != renamed_.end();)
      it = it->parent_path() == name ? renamed_.erase(it) : std::next(it);
    synced_.insert(name);
    return 0;
  }
  ssize_t write(int fd, const void* from, std::size_t bytes, std::int64_t at) const override {
    {
      const std::scoped_lock lock(mutex_);
      synced_.erase(names_[fd]);
    }
    return FileSystem::write(fd, from, bytes, at);
  }
  int rename(const char* from, const char* to) const override {
    const std::scoped_lock lock(mutex_);
    if (!synced_.count(from)) ++unsafe_;
    if (std::string_view(to).ends_with(complete_name) && !renamed_.empty()) ++unsafe_;
    renamed_.insert(to);
    last_ = std::filesystem::path(to).filename().string();
    return FileSystem::rename(from, to);
  }
  int unsafe() const { return unsafe_ + int(renamed_.size()); }
  const std::string& last() const { return last_; }

 private:
  mutable std::mutex mutex_;
  mutable std::map<int, std::string> names_;
  mutable std::set<std::string> synced_;
  mutable std::set<std::filesystem::path> renamed_;
  mutable std::string last_;
  mutable int unsafe_ = 0;
};

}  // namespace

TEST(Save, syncs_everything_before_the_mark_and_the_mark_before_it_returns) {
  const TemporaryDirectory folder;
  const Power files;
  EXPECT_EQ(save_step(folder.path(), 5, 1, files), "");
  EXPECT_EQ(files.last(), "COMPLETE");
  EXPECT_EQ(files.unsafe(), 0);
}

TEST(Find, ignores_what_is_no_complete_step_and_says_so) {
  const TemporaryDirectory folder;
  save_step(folder.path(), 100, 1);
  std::filesystem::create_directory(folder / "step_00000200");
  std::filesystem::create_directory(folder / "step_300");
  std::filesystem::create_directory(folder / "other");
  std::ofstream(folder / "step_00000400") << "a file";
  EXPECT_EQ(step_directories(folder.path()).size(), 2U);
  std::vector<std::string> notices;
  EXPECT_EQ(latest(folder.path(), notices).step, 100);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0], "step 200 is passed over: " + (folder / "step_00000200").string() +
                            ": no complete checkpoint, its mark COMPLETE is missing");
  EXPECT_EQ(loads(folder.path()).first, 100);
}

TEST(Find, tells_all_ranks_what_rank_0_found) {
  const TemporaryDirectory folder;
  save_step(folder.path(), 100, 1);
  run_as_threads(3, [&](Communicator& world) {
    const FoundStep found = agree_on_latest(folder.path(), no_step, world);
    ASSERT_TRUE(found.step);
    EXPECT_EQ(found.step->path, folder / "step_00000100");
  });
}

TEST(KeepRules, keeps_the_last_every_mth_and_those_named) {
  std::vector<StepDirectory> steps;
  for (std::int64_t step = 100; step <= 1000; step += 100) steps.push_back({step, ""});
  std::vector<std::int64_t> gone;
  for (const auto& step : surplus(steps, {.last = 2, .every = 400, .also = {300}})) gone.push_back(step.step);
  EXPECT_EQ(gone, (std::vector<std::int64_t>{100, 200, 500, 600, 700}));
  gone.clear();
  // The best, of step 250, was never saved.
  for (const auto& step : surplus(steps, {.last = 7, .also = {}, .ranked = {250, 300, 100, 200}, .best = 2}))
    gone.push_back(step.step);
  EXPECT_EQ(gone, (std::vector<std::int64_t>{200}));
  EXPECT_EQ(refused([&] { (void)surplus(steps, {.last = 0}); }),
            "keep: the last 0 checkpoints would be none, expected 1 or more");
  EXPECT_EQ(refused([&] { (void)surplus(steps, {.every = -1}); }),
            "keep: every -1th step, expected 0 or more");
}

TEST(KeepRules, deletes_unfinished_steps_only_behind_a_complete_one_and_damaged_ones_never) {
  const TemporaryDirectory folder;
  for (const std::int64_t step : {100, 200, 300, 400}) save_step(folder.path(), step, float(step));
  std::filesystem::remove(folder / "step_00000200" / "COMPLETE");
  std::ofstream(folder.path() / "step_00000300" / "COMPLETE") << "torn";
  std::filesystem::create_directory(folder / "step_00000500");
  EXPECT_EQ(prune(folder.path(), {.last = 1}), (std::vector<std::int64_t>{100, 200}));
  std::vector<std::int64_t> left;
  for (const auto& step : step_directories(folder.path())) left.push_back(step.step);
  EXPECT_EQ(left, (std::vector<std::int64_t>{300, 400, 500}));
  EXPECT_EQ(loads(folder.path()).first, 400);
}
