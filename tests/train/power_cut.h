// A disk that keeps, when the power goes, only what was synced: contents by file, names by directory.
#pragma once

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "weft/base/file.h"

namespace weft::testing {

/// From the nth call on nothing happens any more. Then left() makes the folder what a power cut would have
/// left: a name whose directory was not synced after it was given is gone, or what it was before; a file that
/// was not synced is empty.
class PowerCut final : public FileSystem {
 public:
  explicit PowerCut(int nth) : left_calls_(nth) {}

  int open(const char* path, int flags, unsigned mode) const override {
    if (off()) return -1;
    const int fd = FileSystem::open(path, flags, mode);
    const std::scoped_lock lock(mutex_);
    if (fd >= 0) paths_[fd] = path;
    return fd;
  }
  ssize_t write(int fd, const void* from, std::size_t bytes, std::int64_t at) const override {
    if (off()) return -1;
    const std::scoped_lock lock(mutex_);
    synced_.erase(paths_[fd]);
    return FileSystem::write(fd, from, bytes, at);
  }
  int sync(int fd) const override {
    if (off()) return -1;
    const std::scoped_lock lock(mutex_);
    const std::filesystem::path path = paths_[fd];
    if (!std::filesystem::is_directory(path)) {
      synced_[path] = read_file(path);
      return 0;
    }
    for (auto it = pending_.begin(); it != pending_.end();) {
      if (it->first.parent_path() != path) {
        ++it;
        continue;
      }
      if (it->second)
        durable_[it->first] = *it->second;
      else
        durable_.erase(it->first);
      it = pending_.erase(it);
    }
    return 0;
  }
  int rename(const char* from, const char* to) const override {
    if (off()) return -1;
    const std::scoped_lock lock(mutex_);
    const auto content = synced_.find(from);
    pending_[to] = content == synced_.end() ? std::string() : content->second;
    return FileSystem::rename(from, to);
  }
  int remove(const char* path) const override {
    if (off()) return -1;
    const std::scoped_lock lock(mutex_);
    pending_[path] = std::nullopt;
    return FileSystem::remove(path);
  }
  int make_directory(const char* path, unsigned mode) const override {
    return off() ? -1 : FileSystem::make_directory(path, mode);
  }

  int calls() const { return calls_; }
  void left(const std::filesystem::path& folder) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      std::filesystem::remove_all(entry.path());
    for (const auto& [path, content] : durable_) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << content;
    }
  }

 private:
  bool off() const {
    ++calls_;
    if (--left_calls_ > 0) return false;
    errno = EIO;
    return true;
  }
  mutable std::atomic<int> left_calls_;
  mutable std::atomic<int> calls_{0};
  mutable std::mutex mutex_;
  mutable std::map<int, std::filesystem::path> paths_;
  mutable std::map<std::filesystem::path, std::string> synced_;                  // contents
  mutable std::map<std::filesystem::path, std::optional<std::string>> pending_;  // names; nothing: removed
  mutable std::map<std::filesystem::path, std::string> durable_;
};

}  // namespace weft::testing
