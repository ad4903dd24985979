// A disk that fills up or fails under states in files ends the run, and the newest checkpoint is as it was.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/refused.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

constexpr rlim_t page = 4096;

/// From full() on no file of this process may grow, or be written, beyond a page, as on a disk without room.
class Disk {
 public:
  Disk() : signal_(std::signal(SIGXFSZ, SIG_IGN)) { ::getrlimit(RLIMIT_FSIZE, &before_); }
  ~Disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, signal_);
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  void full() const {
    const rlimit now{.rlim_cur = page, .rlim_max = before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &now), 0);
  }

 private:
  void (*signal_)(int);
  rlimit before_{};
};

/// Takes away what lies in the files of `folder` that have no name any more.
int emptied(const std::filesystem::path& folder) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone || !target.starts_with(folder.string()) || !target.ends_with("(deleted)")) continue;
    if (::ftruncate(std::stoi(entry.path().filename().string()), 0) == 0) ++files;
  }
  return files;
}

enum class Spilled : std::uint8_t { states, weights_too };

/// States of five windows, or four where a sanitizer looks, of which three are in memory.
TrainConfig saving_much(const std::filesystem::path& folder) {
  TrainConfig config = saving_often(folder);
  config.model.padded_vocabulary = sanitized ? 200'000 : 300'000;
  return config;
}

/// Six steps, saved after each second one; before the fifth something happens.
struct Broken {
  Broken(Spilled what, const std::function<void(const std::filesystem::path& spill)>& happens)
      : make(what == Spilled::states ? saving_much : saving_often) {
    TrainConfig config = make(folder.path());
    config.optimizer.offload = {
        .on = true, .directory = spill.path(), .buffers = 3, .weights = what == Spilled::weights_too};
    const Told unbroken = train(make(other.path()));
    said = refused([&] {
      train(config, {.before_step = [&](std::int64_t step, Replica&) {
              if (step == 5) happens(spill.path());
            }});
    });
    left_in_spill = !std::filesystem::is_empty(spill.path());
    wanted = {unbroken.losses.begin() + 4, unbroken.losses.end()};
  }
  /// The last two steps, from what was saved.
  std::vector<double> rest() const { return train(going_on(make(folder.path()))).losses; }

  TrainConfig (*make)(const std::filesystem::path&);
  TemporaryDirectory folder, other, spill;
  std::string said;
  bool left_in_spill = false;
  std::vector<double> wanted;
};

/// What is large is of states alone; weights in files go the same ways between threads.
std::vector<Spilled> kinds() {
  if (threads_watched) return {Spilled::weights_too};
  return {Spilled::states, Spilled::weights_too};
}

}  // namespace

TEST(OffloadFaults, of_a_full_disk_end_the_run_and_its_checkpoint_goes_on) {
  for (const Spilled what : kinds()) {
    std::optional<Disk> disk(std::in_place);
    const Broken run(what, [&](const auto&) { disk->full(); });
    disk.reset();
    EXPECT_THAT(run.said, HasSubstr("File too large"));
    EXPECT_THAT(run.said, HasSubstr("states-of-rank-0"));
    EXPECT_FALSE(run.left_in_spill);
    EXPECT_EQ(run.rest(), run.wanted);
  }
}

TEST(OffloadFaults, of_a_failed_read_end_the_run_and_its_checkpoint_goes_on) {
  for (const Spilled what : kinds()) {
    int files = 0;
    const Broken run(what, [&](const std::filesystem::path& spill) { files = emptied(spill); });
    EXPECT_GE(files, 1);  // descriptors, of one file
    EXPECT_THAT(run.said, HasSubstr("were expected from byte"));
    EXPECT_THAT(run.said, HasSubstr("states-of-rank-0"));
    EXPECT_FALSE(run.left_in_spill);
    EXPECT_EQ(run.rest(), run.wanted);
  }
}
