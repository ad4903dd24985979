// Memory from the pool, arithmetic from the kernels that were chosen.
#include "weft/backend/cpu/device.h"

#include <cstring>

#include "weft/backend/cpu/choose.h"
#include "weft/backend/cpu/threads.h"
#include "weft/backend/timed.h"

namespace weft {
CpuDevice::CpuDevice(const CpuOptions& options)
    : threads_(checked_threads("cpu device", options.threads)),
      exact_(options.exact),
      pool_(*this, system_ground(), options.memory_limit),
      kernels_(
          choose_kernels({options.kernels, threads_, exact_, options.trials, options.plain_calls}, notes_)) {
  if (options.times) kernels_ = timed(std::move(kernels_), *this, *options.times);
  // What the choice itself used is nobody's peak.
  pool_.forget_peaks();
}

CpuDevice::~CpuDevice() = default;

Fence CpuDevice::copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to.data() + offset, from, std::size_t(bytes));
  return {};
}

Fence CpuDevice::copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from.data() + offset, std::size_t(bytes));
  return {};
}

}  // namespace weft
