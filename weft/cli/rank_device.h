// What one rank computes on, and how it speaks.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "weft/backend/open.h"
#include "weft/comm/through_host.h"

namespace weft::cli {

/// A rank whose device keeps its memory to itself, as a GPU does, speaks through the host.
class RankDevice {
 public:
  /// `world` outlives it.
  RankDevice(std::string_view name, const DeviceOptions& options, Communicator& world);
  Device& device() { return *device_; }
  Communicator& world() { return through_ ? static_cast<Communicator&>(*through_) : world_; }

 private:
  Communicator& world_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> host_;  // where words are said from; null: they are read where they lie
  std::optional<HostCommunicator> through_;
};

}  // namespace weft::cli
