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

}  // namespace

HostMemory::HostMemory() : none_(std::make_unique<NoKernels>()) {}

HostMemory::~HostMemory() = default;

StorageRef HostMemory::allocate(std::int64_t bytes, Use use) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, std::size_t(bytes + 64) / 64 * 64));
  if (memory == nullptr) throw std::bad_alloc();
  return StorageRef(std::make_unique<Storage>(*this, memory, bytes, use).release());
}

void HostMemory::recycle(Storage& storage) noexcept {
  const std::unique_ptr<Storage> owner(&storage);
  std::free(storage.data());
}

Fence HostMemory::copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) {
  std::memcpy(to.data() + offset, from, std::size_t(bytes));
  return {};
}

Fence HostMemory::copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) {
  std::memcpy(to, from.data() + offset, std::size_t(bytes));
  return {};
}

std::unique_ptr<Device> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace weft
