#include "weft/backend/meta/device.h"

#include <cstring>

#include "weft/backend/cpu/choose.h"
#include "weft/backend/cpu/threads.h"
#include "weft/backend/meta/gpu_kernels.h"
#include "weft/backend/meta/kernels.h"

namespace weft {

MetaDevice::MetaDevice(const MetaOptions& options)
    : threads_(checked_threads("meta device", options.threads)),
      counts_for_gpu_(options.gpu.has_value()),
      pool_(*this, counting_ground(), options.memory_limit),
      kernels_(kernels_for(options)) {}

std::unique_ptr<Kernels> MetaDevice::kernels_for(const MetaOptions& options) {
  if (options.gpu) return std::make_unique<MetaGpuKernels>(*this, *options.gpu, options.exact);
  return std::make_unique<MetaKernels>(
      *this,
      choose_products({.threads = threads_, .exact = options.exact, .trials = options.trials}, notes_));
}

MetaDevice::~MetaDevice() = default;

/// Whoever reads numbers of a device that has none reads zeros.
Fence MetaDevice::copy_to_host(void* to, const Storage&, std::int64_t, std::int64_t bytes) {
  if (bytes > 0) std::memset(to, 0, std::size_t(bytes));
  return {};
}

}  // namespace weft
