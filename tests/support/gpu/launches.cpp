// Launches by CUDA's runtime, which knows a kernel by an address alone: how it is called was told before
// (gpu.h).
#include <map>

#include "tests/support/gpu/streams.h"

namespace emulated {
namespace {

std::map<const void*, Bind>& kernels() {
  static auto* it = new std::map<const void*, Bind>;
  return *it;
}

}  // namespace

void know(const void* kernel, Bind bind) {
  const auto lock = hold();
  kernels()[kernel] = bind;
}

Bound bound(const void* kernel, void** arguments) {
  const auto known = kernels().find(kernel);
  return known == kernels().end() ? Bound{} : known->second(kernel, arguments);
}

void count_asked(void* stream) {
  meter().in_windows += meter().profiled;
  meter().asked += stream_of(static_cast<cudaStream_t>(stream)).captures ? 0 : 1;
}

}  // namespace emulated

extern "C" {

cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                             std::size_t shared, cudaStream_t on) {
  const auto lock = emulated::hold();
  const emulated::Grid grid{{blocks.x}, {threads.x}, shared};
  if (const int error = emulated::launch_error(on, grid)) return cudaError_t(error);
  emulated::Bound it = emulated::bound(kernel, arguments);
  if (!it) return cudaErrorInvalidDeviceFunction;
  emulated::count_asked(on);
  emulated::give(emulated::stream_of(on), [it = std::move(it), grid] { it(grid); });
  return cudaSuccess;
}

}  // extern "C"
