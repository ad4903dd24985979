// What a run is lent, and why it ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "weft/base/file.h"
#include "weft/base/log.h"
#include "weft/mesh/mesh.h"
#include "weft/report/outlet.h"

namespace weft {

/// Why a run ended.
enum class Ending {
  finished,
  asked,        // by a signal
  at_interval,  // of --exit-interval
  out_of_time,
  unreadable,  // what comes next of the data
  unsaved      // the last checkpoint failed
};

struct Lent {
  Device& device;
  const ProcessMesh& mesh;
  const Log& log;
  report::Outlet* outlet = nullptr;                  // rank 0's; the others tell nothing
  const std::atomic<bool>* asked_to_stop = nullptr;  // set by whoever hears signals
  const FileSystem* files = nullptr;                 // what checkpoints are written through; null: the disk
  std::string machine = {};                          // what this rank computes on, by name
  std::function<void(std::int64_t step, class Replica&)> before_step = {};  // faults made on purpose
};

}  // namespace weft
