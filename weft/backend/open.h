// Devices by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "weft/backend/gpus.h"
#include "weft/backend/plain_calls.h"
#include "weft/tensor/device.h"

namespace weft {

class ProductTrials;
struct WorkTimes;

struct DeviceOptions {
  int threads = 0;                                  // 0: as many as this process may run on
  bool exact = false;                               // bits do not depend on the layout
  std::int64_t memory_limit = 0;                    // bytes, 0: none but the machine's
  std::shared_ptr<ProductTrials> trials = nullptr;  // null: not shared
  PlainCalls* plain_calls = nullptr;                // what falls back on plain loops is counted here
  WorkTimes* times = nullptr;                       // what each kind of work takes is added here
  bool graphs = false;                              // a GPU keeps launches that come again
  bool warpgroups = false;                          // a GPU that has them multiplies by them
  int place = 0;                                    // of this rank among those of this machine
  std::optional<GpuHere> counts_for = {};           // meta: a GPU like this, not a processor
};

/// Exact mode tries the bits of products on the processor it finds: once for all devices that share this.
std::shared_ptr<ProductTrials> new_trials();

/// "cpu" (the fastest kernels this build has), "cpu:reference", "cpu:fast", "cpu:onednn" (its products
/// wherever it has them), "meta" (counts for "cpu"), "cuda" (a GPU: ranks take those of a machine in turn) or
/// "cuda:1" (that one).
std::unique_ptr<Device> open_device(std::string_view name, const DeviceOptions& options = {});

/// Whether it is "cuda" or "cuda:" and a number; fails with Kind::usage where something else follows.
bool names_gpu(std::string_view name);
/// Of so many GPUs the one that a rank computes on.
int gpu_of_rank(std::string_view name, int place, int count);

}  // namespace weft
