// A place in a device's order that the host can wait for.
#pragma once

#include <cstdint>

namespace weft {

class Device;

/// wait() returns when the device has done what it was asked for before the fence. An empty one is of a
/// device that had done it when it was asked.
class [[nodiscard]] Fence {
 public:
  Fence() = default;
  Fence(Device& device, std::uint64_t place) : device_(&device), place_(place) {}
  /// Here the host waits.
  void wait() const;
  explicit operator bool() const { return device_ != nullptr; }

 private:
  Device* device_ = nullptr;
  std::uint64_t place_ = 0;
};

}  // namespace weft
