// One run at a time in a directory: on one machine by file locks, between machines by the heartbeat.
#include "weft/checkpoint/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>

#include "tests/checkpoint/faulty.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"

using namespace weft;
using namespace weft::checkpoint;
using checkpoint::testing::Swift;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

LockHolder run_on(const std::string& machine, const std::string& run) {
  return {.machine = machine,
          .boot = "boot-of-" + machine,
          .process = 4711,
          .since = "2026-11-22_18:30:01_UTC",
          .run = run};
}

/// File locks that are given to whoever asks, as between machines that they do not reach.
class Unreached final : public Swift {
 public:
  int lock(int) const override { return 0; }
};
/// A file system that has no such locks.
class Lockless final : public Swift {
 public:
  int lock(int) const override {
    errno = ENOSYS;
    return -1;
  }
};

/// Takes a directory as runs do; `meanwhile` is what others do in a beat.
class Locked : public ::testing::Test {
 protected:
  std::unique_ptr<DirectoryLock> take(const LockHolder& me, const FileSystem& files = swift_) {
    return std::make_unique<DirectoryLock>(folder_.path(), me, log_, files,
                                           LockPace{.wait = [this] { ++waited_, meanwhile_(); }});
  }
  std::string refusal(const LockHolder& me, const FileSystem& files = swift_) {
    return refused([&] { take(me, files); });
  }
  std::string said() {
    log_.flush();
    return read_file(folder_ / "log");
  }
  bool is_there() const { return std::filesystem::exists(folder_ / lock_name); }
  void leave(const LockHolder& dead) { std::ofstream(folder_ / lock_name) << lock_text(dead); }

  static inline const Swift swift_;
  TemporaryDirectory folder_;
  Log log_{0, {.console = false, .json_path = (folder_ / "log").string(), .now = [] { return 0.0; }}};
  std::function<void()> meanwhile_ = [] {};
  int waited_ = 0;
};

const std::string holder_words = "process 4711 on there, since 2026-11-22 18:30:01 UTC";

}  // namespace

TEST_F(Locked, a_second_run_is_refused_by_the_first_ones_name_and_gets_it_afterwards) {
  auto first = take(run_on("there", "a"));
  const std::string sentence = folder_.path().string() + ": another run saves there: " + holder_words +
                               "; wait until it has ended, or save elsewhere";
  EXPECT_EQ(refusal(run_on("there", "b")), sentence);
  EXPECT_EQ(waited_, 0);
  first->must_hold();
  first.reset();
  EXPECT_FALSE(is_there());
  take(run_on("there", "b"))->must_hold();
}

TEST_F(Locked, a_run_that_died_on_this_machine_is_followed_at_once) {
  leave(run_on("there", "dead"));
  take(run_on("there", "b"))->must_hold();
  EXPECT_EQ(waited_, 0);
}

TEST_F(Locked, a_run_on_another_machine_is_known_by_its_beat) {
  Unreached files;
  const auto first = take(run_on("there", "a"), files);
  meanwhile_ = [&] { first->beat(); };
  EXPECT_THAT(refusal(run_on("here", "b"), files), HasSubstr("another run saves there: " + holder_words));
  EXPECT_EQ(waited_, 1);
  first->must_hold();
}

TEST_F(Locked, a_run_on_another_machine_that_ends_meanwhile_leaves_the_directory) {
  Unreached files;
  auto first = take(run_on("there", "a"), files);
  meanwhile_ = [&] { first.reset(); };
  take(run_on("here", "b"), files)->must_hold();
}

TEST_F(Locked, a_silent_machine_loses_the_directory_and_saves_nothing_more) {
  Unreached files;
  const auto first = take(run_on("there", "a"), files);
  {
    const auto second = take(run_on("here", "b"), files);
    EXPECT_EQ(waited_, 4);
    EXPECT_THAT(said(), HasSubstr("is locked by " + holder_words + ": watching it for 20.0 s"));
    EXPECT_THAT(said(), HasSubstr("the run that locked it is gone, and this one takes it: " + holder_words));
    first->beat();
    second->must_hold();
    EXPECT_THAT(refused([&] { first->must_hold(); }),
                HasSubstr(": this run was not heard from, and another one has taken the directory: process "
                          "4711 on here, since 2026-11-22 18:30:01 UTC; this one saves nothing more there"));
  }
}

TEST_F(Locked, a_machine_that_is_gone_and_keeps_its_lock_is_for_a_person_to_judge) {
  const auto first = take(run_on("there", "a"));
  EXPECT_THAT(refusal(run_on("here", "b")),
              HasSubstr("; it has shown no life for 20.0 s: if its machine is gone, remove " +
                        (folder_ / lock_name).string()));
}

TEST_F(Locked, without_file_locks_the_beat_decides_alone) {
  Lockless files;
  auto first = take(run_on("there", "a"), files);
  meanwhile_ = [&] { first->beat(); };
  EXPECT_THAT(refusal(run_on("there", "b"), files), HasSubstr("another run saves there"));
  meanwhile_ = [] {};
  take(run_on("there", "b"), files)->must_hold();
}

TEST_F(Locked, a_file_that_somebody_deleted_is_made_again) {
  const auto lock = take(run_on("there", "a"));
  std::filesystem::remove(folder_ / lock_name);
  lock->beat();
  EXPECT_FALSE(is_there());
  lock->must_hold();
  EXPECT_THAT(refusal(run_on("there", "b")), HasSubstr("another run saves there"));
}

TEST_F(Locked, what_no_run_wrote_is_taken) {
  std::ofstream(folder_ / lock_name) << "hello";
  take(run_on("there", "a"))->must_hold();
}

TEST_F(Locked, a_disk_that_takes_no_lock_is_told_of_once_and_tried_again) {
  const checkpoint::testing::Faulty files(1, checkpoint::testing::Manner::once);
  const auto lock = take(run_on("there", "a"), files);
  EXPECT_FALSE(is_there());
  EXPECT_THAT(said(), HasSubstr(" cannot be locked, and a second run that saves there would not be noticed: "
                                "cannot create "));
  lock->must_hold();
  EXPECT_TRUE(is_there());
}

TEST_F(Locked, this_run_beats_by_itself_and_ends_without_waiting) {
  const auto lock = take(this_run());
  lock->keep_beating();
  lock->must_hold();
  EXPECT_TRUE(lock_holder(read_file(folder_ / lock_name)));
}

TEST(LockText, gives_back_what_it_was_made_of) {
  EXPECT_TRUE(rc::check([](const std::string& machine, const std::string& run) {
    LockHolder holder = run_on("m" + machine, "r" + run);
    holder.beat = *rc::gen::inRange<std::int64_t>(0, INT64_MAX);
    const std::string made = lock_text(holder);
    RC_ASSERT(made.size() == lock_bytes);
    const auto read = lock_holder(made);
    RC_ASSERT(read && lock_text(*read) == made && read->beat == holder.beat && read->process == 4711);
  }));
}

TEST(LockText, of_another_program_is_none) {
  const std::string good = lock_text(run_on("m", "r"));
  EXPECT_TRUE(lock_holder(good));
  for (const std::string& bad : {std::string(), std::string("weft lock 1"), "weft lock 2" + good.substr(11),
                                 good.substr(0, good.find("beat")), std::string(600, '\n')})
    EXPECT_FALSE(lock_holder(bad)) << bad;
}
