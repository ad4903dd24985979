// A device by name, and a processor beside it where the host cannot read its memory.
#include "weft/cli/rank_device.h"

namespace weft::cli {

RankDevice::RankDevice(std::string_view name, const DeviceOptions& options, Communicator& world)
    : world_(world), device_(open_device(name, options)) {
  if (device_->host_visible()) return;
  host_ = open_device("cpu", {.threads = 1});
  through_.emplace(world, *host_);
}

}  // namespace weft::cli
