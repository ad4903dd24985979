// A device that computes with the fast kernels of a chosen instruction set, on plain memory.
#pragma once

#include <cstdlib>
#include <cstring>

#include "weft/backend/cpu/fast/kernels.h"

namespace weft::testing {

class FastDevice final : public Device {
 public:
  FastDevice(fast::InstructionSet set, int threads) : kernels_(threads, set) {}
  const char* name() const override { return "fast"; }
  StorageRef allocate(std::int64_t bytes, Use use) override {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, std::size_t(bytes + 64) / 64 * 64));
    return StorageRef(new Storage(*this, memory, bytes, use));
  }
  void recycle(Storage& storage) noexcept override {
    std::free(storage.data());
    delete &storage;
  }
  Kernels& kernels() override { return kernels_; }
  int threads() const override { return kernels_.threads(); }
  void copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override {
    std::memcpy(to.data() + offset, from, std::size_t(bytes));
  }
  void copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override {
    std::memcpy(to, from.data() + offset, std::size_t(bytes));
  }
  void synchronize() override {}
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}

 private:
  FastKernels kernels_;
};

}  // namespace weft::testing
