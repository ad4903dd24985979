// One run at a time saves into a directory: a lock that dies with its process, and a heartbeat for machines
// that file locks do not reach.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "weft/base/file.h"
#include "weft/base/log.h"

namespace weft::checkpoint {

/// The file in a directory that says who saves there. It is there while a run saves, and after one was
/// killed.
inline constexpr const char* lock_name = ".weft-lock";
inline constexpr std::size_t lock_bytes = 512;

/// A process, and what tells it from all others.
struct LockHolder {
  std::string machine, boot;  // boot: of the machine's kernel, as machines may share a name
  std::int64_t process = 0;
  std::string since, run;  // run: drawn at random
  std::int64_t beat = 0;
};
/// This process, now.
LockHolder this_run();

/// What the file holds: lines, padded to lock_bytes.
std::string lock_text(const LockHolder& holder);
/// Nothing where no run wrote it.
std::optional<LockHolder> lock_holder(std::string_view text);

/// Time, so that tests need none.
struct LockPace {
  std::chrono::milliseconds beat{5000};
  int patience = 4;            // beats that a living holder never misses
  std::function<void()> wait;  // for one beat; none: sleeps
};

/// Protocol: flock decides wherever it reaches, so a lock whose process is gone is free at once on the same
/// machine. The holder writes a new number into the file every beat. Who finds another machine's name in a
/// file that flock gives away watches it for `patience` beats: where the number moves, flock does not reach
/// that far, and the directory is taken. A holder that was silent for so long finds that out in must_hold(),
/// and saves nothing more. A disk on which no lock can be made is told of, and the run goes on without.
class DirectoryLock {
 public:
  /// Fails with Kind::usage, naming the holder, where another run holds the directory, which must exist.
  DirectoryLock(std::filesystem::path directory, LockHolder me, const Log& log,
                const FileSystem& files = disk(), LockPace pace = {});
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// From now on a thread calls beat().
  void keep_beating();
  /// Writes the next number. Asks the heap for nothing; what fails is left to must_hold().
  void beat();
  /// Fails with Kind::usage where another run has taken the directory. A file that was deleted is made again.
  void must_hold();

 private:
  enum class Life : std::uint8_t { none, silent, beats };
  struct LockContent {
    bool there = false;
    std::array<char, lock_bytes> bytes{};
    std::size_t size = 0;
    std::string_view text() const { return {bytes.data(), size}; }
  };
  void take();
  bool take_once();
  Life watch(const LockContent& first) const;
  LockContent look() const;
  void write_mine();
  bool mine(const LockContent& seen) const;
  void let_go();
  [[noreturn]] void refuse(const LockContent& seen, Life life) const;
  void tell_once(const std::string& sentence);

  std::filesystem::path directory_, path_;
  LockHolder me_;
  Log log_;
  const FileSystem& files_;
  LockPace pace_;
  std::string text_;       // what the file holds when it is ours
  std::size_t number_at_;  // where the beat stands in it
  int fd_ = -1;            // open: held
  bool told_ = false;
  std::mutex mutex_;
  std::condition_variable_any stopping_;
  std::jthread heart_;
};

}  // namespace weft::checkpoint
