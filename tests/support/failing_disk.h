// A disk of which one call fails.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "weft/base/file.h"

namespace weft::support {

/// The read or write that so many others go before fails; none does below zero.
class FailingDisk final : public FileSystem {
 public:
  ssize_t read(int fd, void* to, std::size_t bytes, std::int64_t at) const override {
    if (reads_left-- != 0) return FileSystem::read(fd, to, bytes, at);
    errno = EIO;
    return -1;
  }
  ssize_t write(int fd, const void* from, std::size_t bytes, std::int64_t at) const override {
    if (writes_left-- != 0) return FileSystem::write(fd, from, bytes, at);
    errno = ENOSPC;
    return -1;
  }
  mutable int reads_left = -1, writes_left = -1;
};

}  // namespace weft::support
