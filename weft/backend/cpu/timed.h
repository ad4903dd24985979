// Kernels that look at the clock: what each kind of work takes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "weft/tensor/kernels.h"
#include "weft/tensor/meter.h"

namespace weft {

/// By kind of work, since the last clear().
struct WorkTimes {
  std::array<double, works> seconds{};
  std::array<std::int64_t, works> calls{};
  void clear() { *this = {}; }
  double total() const;
};

/// The same kernels; `times` outlives them.
std::unique_ptr<Kernels> timed(std::unique_ptr<Kernels> kernels, WorkTimes& times);

}  // namespace weft
