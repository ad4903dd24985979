// A long array that either lives in memory of its own or is a window on a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "weft/base/file.h"

namespace weft::data {

/// Zeroed memory in large pages where the system has them: shuffling touches it all over.
class Pages {
 public:
  Pages() = default;
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(std::size_t size)
      : pages_(size * sizeof(T)), writable_(static_cast<T*>(pages_.address()), size), values_(writable_) {}
  /// `size` values from byte `at` of a file.
  Array(MappedFile file, std::int64_t at, std::int64_t size) : file_(std::move(file)) {
    values_ = file_->as<T>(at, size);
  }
  Array(Array&&) noexcept = default;
  Array& operator=(Array&&) noexcept = default;

  std::size_t size() const { return values_.size(); }
  const T& operator[](std::size_t i) const { return values_[i]; }
  std::span<const T> values() const { return values_; }
  /// Empty where the array is a window on a file.
  std::span<T> writable() { return writable_; }

 private:
  Pages pages_;
  std::optional<MappedFile> file_;
  std::span<T> writable_;
  std::span<const T> values_;
};

}  // namespace weft::data
