// Kernels that look at the device's clock: what each kind of work takes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "weft/tensor/instant.h"
#include "weft/tensor/kernels.h"
#include "weft/tensor/meter.h"

namespace weft {

/// By kind of work, since it was last forgotten.
struct WorkTimes {
  std::array<Spent, works> spent;
  std::array<std::int64_t, works> calls{};
  bool paused = false;  // nobody looks

  void forget();
  /// Seconds of what is over by now.
  double total();
};

/// The same kernels of this device; `times` outlives them.
std::unique_ptr<Kernels> timed(std::unique_ptr<Kernels> kernels, Device& device, WorkTimes& times);

}  // namespace weft
