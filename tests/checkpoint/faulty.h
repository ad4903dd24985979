// A file layer that dies at a chosen call: that call fails, and in the manner of a killed process all after
// it.
#pragma once

#include <atomic>
#include <cerrno>

#include "weft/base/file.h"

namespace weft::checkpoint::testing {

/// Takes every sync as done: what is tested is what other processes see, not a power cut, and a disk is slow.
class Swift : public FileSystem {
 public:
  int sync(int) const override { return 0; }
};

enum class Manner {
  once,     // one call fails, as a disk that was full for a moment
  for_good  // no call after it does anything, as after kill -9
};

class Faulty final : public FileSystem {
 public:
  Faulty(int nth, Manner manner, int error = ENOSPC) : left_(nth), manner_(manner), error_(error) {}

  int open(const char* path, int flags, unsigned mode) const override {
    return hit() ? -1 : FileSystem::open(path, flags, mode);
  }
  ssize_t write(int fd, const void* from, std::size_t bytes, std::int64_t at) const override {
    if (!hit()) return FileSystem::write(fd, from, bytes, at);
    // Half of it reached the disk.
    if (bytes > 1) (void)FileSystem::write(fd, from, bytes / 2, at);
    errno = error_;
    return -1;
  }
  int sync(int) const override { return hit() ? -1 : 0; }
  int close(int fd) const override {
    const int done = FileSystem::close(fd);  // a test must not run out of files
    return hit() ? -1 : done;
  }
  int rename(const char* from, const char* to) const override {
    return hit() ? -1 : FileSystem::rename(from, to);
  }
  int remove(const char* path) const override { return hit() ? -1 : FileSystem::remove(path); }
  int make_directory(const char* path, unsigned mode) const override {
    return hit() ? -1 : FileSystem::make_directory(path, mode);
  }
  int calls() const { return calls_; }
  bool fired() const { return left_ <= 0; }

 private:
  bool hit() const {
    ++calls_;
    const int left = --left_;
    if (left > 0 || (left < 0 && manner_ == Manner::once)) return false;
    errno = error_;
    return true;
  }
  mutable std::atomic<int> left_;
  mutable std::atomic<int> calls_{0};
  Manner manner_;
  int error_;
};

}  // namespace weft::checkpoint::testing
