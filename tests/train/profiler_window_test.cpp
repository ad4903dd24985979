// Which steps a profiler beside the process is shown.
#include "weft/train/profiler_window.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/plain_device.h"
#include "weft/base/error.h"
#include "weft/tensor/named.h"

using namespace weft;

namespace {

class WatchedDevice final : public weft::testing::PlainDevice {
 public:
  Fence fence() override {
    told += 's';
    return {};
  }
  void begin_profile() override { told += '('; }
  void end_profile() noexcept override { told += ')'; }
  void begin_name(std::string_view name, std::int64_t number) override {
    told += text(name, number < 0 ? "" : text(number), '[');
  }
  void end_name() noexcept override { told += ']'; }

  std::string told;
};

/// What a device is told in steps of these numbers, each of which is its last digit.
std::string told(const ProfileConfig& asked, std::int64_t first, std::int64_t last, int rank = 0) {
  WatchedDevice device;
  {
    ProfilerWindow window(asked, device, rank);
    (void)window.begin(first, last);
    for (std::int64_t step = first; step <= last; ++step) {
      window.before(step);
      {
        const Named whole(device, "step", step), part(device, "part");
        device.told += std::to_string(step % 10);
      }
      window.after(step);
    }
  }
  return device.told;
}

}  // namespace

TEST(ProfilerWindow, shows_whole_steps_of_the_ranks_that_are_named) {
  EXPECT_EQ(told({.on = true, .after = 2, .last = 4}, 1, 6), "12s(34s)56");
  EXPECT_EQ(told({.on = true, .after = 0, .last = 1}, 1, 2), "s(1s)2");
  EXPECT_EQ(told({.on = false, .after = 2, .last = 4}, 1, 6), "123456");
  EXPECT_EQ(told({.on = true, .after = 2, .last = 4, .ranks = {1, 2}}, 1, 6), "123456");
  EXPECT_EQ(told({.on = true, .after = 2, .last = 4, .ranks = {1, 2}}, 1, 6, 2), "12s(34s)56");
}

TEST(ProfilerWindow, shows_what_a_run_has_of_it) {
  EXPECT_EQ(told({.on = true, .after = 2, .last = 4}, 4, 6), "s(4s)56");
  EXPECT_EQ(told({.on = true, .after = 2, .last = 9}, 1, 4), "12s(34s)");  // and ends with the run
  EXPECT_EQ(told({.on = true, .after = 2, .last = 4}, 5, 6), "56");
}

TEST(ProfilerWindow, has_names_where_they_are_wanted) {
  EXPECT_EQ(told({.on = true, .after = 1, .last = 2, .names = true}, 1, 3), "1s(step2[part[2]]s)3");
  EXPECT_EQ(told({.on = false, .after = 1, .last = 2, .names = true}, 1, 3), "123");
  EXPECT_EQ(told({.on = true, .after = 0, .last = 9, .names = true}, 1, 1), "s(step1[part[1]]s)");
}

TEST(ProfilerWindow, says_where_a_run_has_nothing_of_it) {
  WatchedDevice device;
  ProfilerWindow window({.on = true, .after = 10, .last = 12}, device, 0),
      quiet({.on = true, .after = 10, .last = 12, .ranks = {3}}, device, 0);
  EXPECT_EQ(window.begin(1, 11), "");
  EXPECT_EQ(window.begin(12, 20), "");
  EXPECT_EQ(window.begin(1, 10),
            "a profiler is shown nothing: steps 11 to 12 are none of this run, which has 1 to 10");
  EXPECT_EQ(window.begin(13, 20),
            "a profiler is shown nothing: steps 11 to 12 are none of this run, which has 13 to 20");
  EXPECT_EQ(quiet.begin(13, 20), "");
}
