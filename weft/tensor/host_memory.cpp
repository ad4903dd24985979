// The heap, behind the words of a device.
#include "weft/tensor/host_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "weft/tensor/kernels.h"

namespace weft {
namespace {

class NoKernels final : public Kernels {
 public:
  const char* name() const override { return "host memory"; }
};

class HostMemory final : public Device {
 public:
  const char* name() const override { return "host memory"; }
  StorageRef allocate(std::int64_t bytes, Use use) override {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, std::size_t(bytes + 64) / 64 * 64));
    if (memory == nullptr) throw std::bad_alloc();
    return StorageRef(std::make_unique<Storage>(*this, memory, bytes, use).release());
  }
  void recycle(Storage& storage) noexcept override {
    const std::unique_ptr<Storage> owner(&storage);
    std::free(storage.data());
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
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}

 private:
  NoKernels kernels_;
};

}  // namespace

std::unique_ptr<Device> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace weft
