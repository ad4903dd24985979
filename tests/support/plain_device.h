// The simplest device that keeps its word: memory from the heap, no arithmetic. For tests of what needs only
// memory.
#pragma once

#include "weft/tensor/host_memory.h"
#include "weft/tensor/kernels.h"

namespace weft::testing {

class PlainKernels final : public Kernels {
 public:
  const char* name() const override { return "plain"; }
};

class PlainDevice : public HostMemory {
 public:
  const char* name() const override { return "plain"; }
  StorageRef allocate(std::int64_t bytes, Use use) override {
    meter_.hold(use, bytes);
    return HostMemory::allocate(bytes, use);
  }
  void recycle(Storage& storage) noexcept override {
    meter_.release(storage.use(), storage.bytes());
    HostMemory::recycle(storage);
  }
  Kernels& kernels() override { return kernels_; }
  MemoryMeter memory() const override { return meter_; }
  void forget_peaks() override { meter_.forget_peaks(); }

 private:
  PlainKernels kernels_;
  MemoryMeter meter_;
};

}  // namespace weft::testing
