// The GPUs of the fake machine: how many, which one a thread chose, and what they refuse to launch.
#include <cuda_profiler_api.h>

#include <cstdio>

#include "tests/support/gpu/machine.h"
#include "tests/support/gpu/runtime.h"
#include "tests/support/gpu/streams.h"

namespace emulated {
namespace {

Cards& cards() {
  static Cards it;
  return it;
}

std::size_t most_shared() {
  return cards().shared.value_or(std::size_t(cards().capability < 9 ? 163 : 227) << 10);
}

int& chosen() {
  thread_local int it = 0;
  return it;
}

}  // namespace

void set_cards(const Cards& is) { cards() = is; }
int capability() { return cards().capability; }
std::size_t version_of_products() { return cards().products; }
bool has_nccl() { return cards().nccl; }
int chosen_device() { return chosen(); }

int device_of(const void* at) {
  const auto lock = hold();
  const auto* byte = static_cast<const std::byte*>(at);
  for (const auto& [block, is] : runtime().blocks)
    if (byte >= block && byte < static_cast<const std::byte*>(block) + is.bytes) return is.device;
  return -1;
}

int launch_error(void* stream, const Grid& grid) {
  if (stream && static_cast<CUstream_st*>(stream)->device != chosen()) return cudaErrorInvalidResourceHandle;
  if (grid.threads.x > most_threads || grid.blocks.x == 0 || grid.threads.x == 0)
    return cudaErrorInvalidConfiguration;
  return grid.shared > most_shared() ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace emulated

using emulated::cards;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = cards().count;
  if (cards().driver < 13000) return cudaErrorInsufficientDriver;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= cards().count) return cudaErrorInvalidDevice;
  emulated::chosen() = device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = cards().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = cards().free;
  *all = emulated::Cards().free;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* place, int length, int device) {
  std::snprintf(place, std::size_t(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaProfilerStart() {
  emulated::meter().windows += !emulated::meter().profiled;
  emulated::meter().profiled = true;
  return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
  emulated::meter().profiled = false;
  return cudaSuccess;
}
// As few units as make a grid of two blocks run twice.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = 0;
  if (which == cudaDevAttrMultiProcessorCount) *value = 2;
  if (which == cudaDevAttrComputeCapabilityMajor) *value = cards().capability;
  if (which == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = int(emulated::most_shared());
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorInvalidValue:
      return "invalid argument";
    default:
      return "an error of the fake runtime";
  }
}

}  // extern "C"
