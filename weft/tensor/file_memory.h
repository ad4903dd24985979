// A file as a device: what lies there can be copied to and from, and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weft/base/descriptor.h"
#include "weft/base/file.h"
#include "weft/tensor/device.h"

namespace weft {

/// Storages are regions of a file that has no name: it goes with the device, or with the process. They begin
/// with zeros. A part at the end of each may stay in memory. Copies have happened when they return, and
/// several threads may copy. A full disk or a failed read is an error of the copy.
class FileMemory final : public Device {
 public:
  struct BackingFile {
    std::filesystem::path directory;  // empty: what is in the file is not kept, bytes are counted
    std::string name;                 // for messages, and for the moment until the file has none
    double fraction = 1;              // of every storage that lies in the file
    const FileSystem* files = &disk();
    /// Takes bytes of an open file from its disk before they are written, from where on and how many; returns
    /// what errno would say. None: posix_fallocate.
    std::function<int(int, std::int64_t, std::int64_t)> take = {};
  };
  /// What stays in memory is `rest`'s.
  FileMemory(BackingFile backing, Device& rest);
  ~FileMemory() override;
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  const char* name() const override { return "a file"; }
  StorageRef allocate(std::int64_t bytes, Use use) override;
  void recycle(Storage& storage) noexcept override;
  Kernels& kernels() override { return *none_; }
  /// Without a file where all stays in memory that does.
  bool holds_numbers() const override { return file_ || (backing_.fraction == 0 && rest_.holds_numbers()); }
  bool host_visible() const override { return false; }
  Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override;
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override;
  /// Told before others copy: whoever has newer numbers of what lies there puts them in the file, by the two
  /// calls below, which tell nobody.
  enum class Copies : std::uint8_t { from_file, to_file };
  void before_copies(std::function<void(Copies)> told) { told_ = std::move(told); }
  void write(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes);
  void read(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) const;
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}

  /// In the file, and in memory.
  std::int64_t bytes_of_file() const { return end_; }
  std::int64_t bytes_of_memory() const { return in_memory_; }
  /// Takes from the disk what was allocated since the last time, so that nobody else fills it before it is
  /// written; false where the disk has less than that left.
  [[nodiscard]] bool reserve();
  std::int64_t bytes_to_reserve() const { return end_ - reserved_; }
  /// What the file's disk has left; more than anybody has where there is no file.
  std::int64_t room() const;

 private:
  class Region;
  BackingFile backing_;
  Device& rest_;
  std::optional<File> file_;
  Descriptor same_file_;  // for what File has no word
  std::unique_ptr<Kernels> none_;
  std::function<void(Copies)> told_;
  std::int64_t end_ = 0, reserved_ = 0, in_memory_ = 0;
};

}  // namespace weft
