// Runs that are killed, or lose power, at any call of the file layer.
#include <gtest/gtest.h>

#include "tests/support/sanitized.h"
#include "tests/train/power_cut.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using checkpoint::testing::Faulty;
using checkpoint::testing::Manner;
using support::TemporaryDirectory;

namespace {

/// The calls of the file layer at which a disk dies: every n-th, and each of the last ones, for only after
/// those is everything saved.
std::vector<int> deaths(int calls, int n) {
  constexpr int last = 6;
  std::vector<int> at;
  for (int nth = 2; nth <= calls - last; nth += n) at.push_back(nth);
  for (int nth = calls - last + 1; nth <= calls; ++nth) at.push_back(nth);
  return at;
}

/// A run whose disk dies at some call, and what an unbroken one gives.
class Killed : public ::testing::Test {
 protected:
  Killed() : unbroken_(train(saving_twice(whole_.path()))), tensors_(tensors_of(whole_ / "step_00000002")) {}

  /// Goes on with what lies in the folder; returns how many steps need not be done again.
  std::size_t go_on(const std::filesystem::path& folder) const {
    return go_on(saving_twice(folder), folder).first;
  }
  /// And what was said.
  std::pair<std::size_t, std::string> go_on(const TrainConfig& config,
                                            const std::filesystem::path& folder) const {
    TrainConfig again = going_on(config);
    again.checkpoint.allow_fresh_start = true;
    const Told told = train(again, {.data = &data_});
    const std::size_t done = unbroken_.losses.size() - told.losses.size();
    const auto from = unbroken_.losses.begin() + std::ptrdiff_t(done);
    EXPECT_EQ(told.losses, std::vector<double>(from, unbroken_.losses.end()));
    EXPECT_EQ(tensors_of(folder / "step_00000002"), tensors_);
    return {done, told.said};
  }

  TemporaryDirectory whole_;
  RunData data_ = open_run_data(saving_twice(whole_.path()));
  Told unbroken_;
  std::map<std::string, std::vector<double>> tensors_;
};

}  // namespace

// Every call of the file layer in a run is one at which it may be killed: nothing after it happens. What is
// on the disk then must lead to the bits of the unbroken run.
TEST_F(Killed, at_any_write_rename_or_sync_a_run_goes_on_with_the_bits_of_the_unbroken_one) {
  const int calls = calls_of(saving_twice("later"));
  ASSERT_GT(calls, 40);
  std::set<std::size_t> done;
  for (const int nth : deaths(calls, every(9))) {
    if (HasFailure()) break;
    SCOPED_TRACE("killed at call " + std::to_string(nth));
    const TemporaryDirectory folder;
    const Faulty files(nth, Manner::for_good);
    train(saving_twice(folder.path()), {.files = &files, .data = &data_});
    ASSERT_TRUE(files.fired());
    done.insert(go_on(folder.path()));
  }
  EXPECT_EQ(done, (std::set<std::size_t>{0, 1, 2}));
}

TEST_F(Killed, by_a_power_cut_at_any_call_a_run_goes_on_with_the_bits_of_the_unbroken_one) {
  const TemporaryDirectory counting;
  const PowerCut none(1 << 30);
  train(saving_twice(counting.path()), {.files = &none});
  none.left(counting.path());
  EXPECT_EQ(go_on(counting.path()), 2U) << "what a save returned from survives";
  std::set<std::size_t> done;
  for (const int nth : deaths(none.calls(), every(9))) {
    if (HasFailure()) break;
    SCOPED_TRACE("power cut at call " + std::to_string(nth));
    const TemporaryDirectory folder;
    const PowerCut files(nth);
    train(saving_twice(folder.path()), {.files = &files, .data = &data_});
    files.left(folder.path());
    done.insert(go_on(folder.path()));
  }
  EXPECT_EQ(done, (std::set<std::size_t>{0, 1, 2}));
}

// The record of the next step is written after a checkpoint is complete: with it the step is compared,
// without it the last batch.
TEST_F(Killed, at_any_call_of_a_run_that_records_its_steps_what_is_there_is_found_to_be_true) {
  const auto recording = [](const std::filesystem::path& folder) {
    TrainConfig config = saving_twice(folder);
    config.checkpoint.verify = true;
    return config;
  };
  const int calls = calls_of(recording("later"));
  std::set<std::string> compared;
  for (const int nth : deaths(calls, 3 * every(7))) {
    if (HasFailure()) break;
    SCOPED_TRACE("killed at call " + std::to_string(nth));
    const TemporaryDirectory folder;
    const Faulty files(nth, Manner::for_good);
    train(recording(folder.path()), {.files = &files, .data = &data_});
    const auto [done, said] = go_on(recording(folder.path()), folder.path());
    for (const char* what : {"verified: step 2 gives", "verified: the last batch has", "a fresh start"})
      if (said.find(what) != std::string::npos) compared.insert(what);
  }
  EXPECT_EQ(compared.size(), 3U);
}
