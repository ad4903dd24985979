// Memory of the host as a device: for messages between ranks and for copies that wait to be written.
#pragma once

#include <memory>

#include "weft/tensor/device.h"

namespace weft {

/// It computes nothing. Memory comes from the heap and goes back at once; bad_alloc where there is none.
class HostMemory : public Device {
 public:
  HostMemory();
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  const char* name() const override { return "host memory"; }
  StorageRef allocate(std::int64_t bytes, Use use) override;
  void recycle(Storage& storage) noexcept override;
  Kernels& kernels() override { return *none_; }
  Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override;
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override;
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}

 private:
  std::unique_ptr<Kernels> none_;
};

std::unique_ptr<Device> host_memory();

}  // namespace weft
