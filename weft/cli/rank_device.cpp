// A device by name, and how ranks reach each other where the host cannot read its memory.
#include "weft/cli/rank_device.h"

#include <map>

#include "weft/backend/gpus.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/environment.h"

namespace weft::cli {
namespace {

/// Why these ranks cannot speak from GPU to GPU: the same sentence for all of them; empty where they can.
std::string why_through_host(Communicator& world, const DeviceLines& mine) {
  if (world.size() == 1) return "there is one rank";
  const std::vector<std::string> all =
      world.tell_all(text(mine.missing(), '\n', launch::host_name(), ", GPU ", mine.place()));
  std::map<std::string, std::size_t> owners;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string missing = all[rank].substr(0, all[rank].find('\n'));
    const std::string place = all[rank].substr(missing.size() + 1);
    if (!missing.empty()) return text("on rank ", rank, " ", missing);
    const auto [other, first] = owners.emplace(place, rank);
    if (!first) return text("ranks ", other->second, " and ", rank, " share ", place);
  }
  return "";
}

}  // namespace

RankDevice::RankDevice(std::string_view name, const DeviceOptions& options, Communicator& world)
    : world_(world), device_(open_device(name, options)) {
  if (device_->host_visible()) return;
  lines_ = lines_of_gpu(*device_);
  const std::string why = why_through_host(world, *lines_);
  if (why.empty()) {
    lines_->ask_while_waiting([&world] { world.check(); });
    using Sums = DirectCommunicator::Sums;
    speaks_ = std::make_unique<DirectCommunicator>(world, *device_, *lines_,
                                                   options.exact ? Sums::trees : Sums::of_lines);
    way_ = text("ranks speak from GPU to GPU by ", line_library());
    return;
  }
  host_ = open_device("cpu", {.threads = 1});
  speaks_ = std::make_unique<HostCommunicator>(world, *host_);
  if (world.size() > 1) way_ = text("ranks speak through the host: ", why);
}

std::vector<std::string> RankDevice::notes() const {
  std::vector<std::string> out = device_->notes();
  if (!way_.empty()) out.push_back(way_);
  return out;
}

}  // namespace weft::cli
