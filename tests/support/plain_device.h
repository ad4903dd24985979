// The simplest device that keeps its word: memory from the heap, no arithmetic. For tests of what needs only
// memory.
#pragma once

#include <cstdlib>
#include <cstring>

#include "weft/tensor/device.h"
#include "weft/tensor/kernels.h"

namespace weft::testing {

class PlainKernels final : public Kernels {
 public:
  const char* name() const override { return "plain"; }
};

class PlainDevice final : public Device {
 public:
  const char* name() const override { return "plain"; }
  StorageRef allocate(std::int64_t bytes, Use use) override {
    meter_.hold(use, bytes);
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, std::size_t(bytes + 64) / 64 * 64));
    return StorageRef(new Storage(*this, memory, bytes, use));
  }
  void recycle(Storage& storage) noexcept override {
    meter_.release(storage.use(), storage.bytes());
    std::free(storage.data());
    delete &storage;
  }
  Kernels& kernels() override { return kernels_; }
  void copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override {
    std::memcpy(to.data() + offset, from, std::size_t(bytes));
  }
  void copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override {
    std::memcpy(to, from.data() + offset, std::size_t(bytes));
  }
  void synchronize() override {}
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return meter_; }
  void forget_peaks() override { meter_.forget_peaks(); }

 private:
  PlainKernels kernels_;
  MemoryMeter meter_;
};

}  // namespace weft::testing
