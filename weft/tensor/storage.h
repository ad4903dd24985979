// Memory that returns itself to the device it came from, and remembers what it is for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weft {

class Device;

/// What memory is for: the lines of the memory table.
enum class Use : std::uint8_t {
  weights,
  gradients,
  optimizer,
  activations,
  workspace,
  communication,
};
inline constexpr int uses = 6;
const char* name(Use use);

/// A block of a device's memory. The device makes and recycles these; everybody else holds a StorageRef.
/// Counted by hand rather than by shared_ptr, so that a recycled block needs no heap at all.
class Storage {
 public:
  Storage(Device& device, std::byte* data, std::int64_t bytes, Use use)
      : device_(&device), data_(data), bytes_(bytes), use_(use) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  Use use() const { return use_; }
  Device& device() const { return *device_; }

 private:
  friend class StorageRef;
  Device* device_;
  std::byte* data_;  // null on a device that only counts
  std::int64_t bytes_;
  std::atomic<std::int32_t> holders_{0};
  Use use_;
};

/// Holds a Storage; the last holder gives it back to its device. The device must outlive it.
class StorageRef {
 public:
  StorageRef() = default;
  explicit StorageRef(Storage* storage) : storage_(storage) { hold(); }
  StorageRef(const StorageRef& other) : storage_(other.storage_) { hold(); }
  StorageRef(StorageRef&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StorageRef& operator=(StorageRef other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StorageRef() { release(); }

  explicit operator bool() const { return storage_ != nullptr; }
  Storage* operator->() const { return storage_; }
  Storage& operator*() const { return *storage_; }
  bool operator==(const StorageRef&) const = default;

 private:
  void hold() const {
    if (storage_) storage_->holders_.fetch_add(1, std::memory_order_relaxed);
  }
  void release();
  Storage* storage_ = nullptr;
};

}  // namespace weft
