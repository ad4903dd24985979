#include "weft/tensor/meter.h"

#include <algorithm>

namespace weft {

const char* name(Work work) {
  switch (work) {
    case Work::product:
      return "product";
    case Work::attention:
      return "attention";
    case Work::norm:
      return "norm";
    case Work::elementwise:
      return "elementwise";
    case Work::loss:
      return "loss";
    case Work::embedding:
      return "embedding";
    case Work::optimizer:
      return "optimizer";
    case Work::other:
      return "other";
  }
  return "unknown";
}

void MemoryMeter::hold(Use use, std::int64_t bytes) {
  const auto i = std::size_t(use);
  now[i] += bytes;
  peak[i] = std::max(peak[i], now[i]);
  total += bytes;
  total_peak = std::max(total_peak, total);
}

void MemoryMeter::release(Use use, std::int64_t bytes) {
  now[std::size_t(use)] -= bytes;
  total -= bytes;
}

void MemoryMeter::forget_peaks() {
  peak = now;
  total_peak = total;
}

std::int64_t WorkMeter::flops() const {
  std::int64_t sum = 0;
  for (const Tally& tally : by) sum += tally.flops;
  return sum;
}

}  // namespace weft
