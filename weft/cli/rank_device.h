// What one rank computes on, and how it speaks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/backend/open.h"
#include "weft/comm/direct.h"
#include "weft/comm/through_host.h"

namespace weft::cli {

/// A rank whose device keeps its memory to itself, as a GPU does, speaks from GPU to GPU where every rank has
/// one of its own and NCCL is there, and through the host elsewhere.
class RankDevice {
 public:
  /// All ranks call it at once. `world` outlives it.
  RankDevice(std::string_view name, const DeviceOptions& options, Communicator& world);
  Device& device() { return *device_; }
  Communicator& world() { return speaks_ ? *speaks_ : world_; }
  /// Sentences for the log: the device's, and how ranks speak where there is something to choose.
  std::vector<std::string> notes() const;

 private:
  Communicator& world_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> host_;        // where words are said from, where they go through the host
  std::unique_ptr<DeviceLines> lines_;  // null: the host reads what is said where it lies
  std::unique_ptr<Communicator> speaks_;
  std::string way_;  // empty: there is nothing to choose
};

}  // namespace weft::cli
