// Which GPUs there are, and why not, by CUDA's runtime: on a machine without them or without a driver too.
#include <gpu_notes.h>

#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/nccl_lines.h"
#include "weft/base/error.h"

namespace weft {
namespace {

/// 13020 is 13.2.
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string built_with() {
  int runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  return gpu::real ? "CUDA " + version(runtime) : "an emulated GPU";
}

/// The runtime tells an old driver and none by one error, and which by the driver's version.
std::string reason(cudaError_t error) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "there is no driver of NVIDIA's on this machine";
  if (error == cudaErrorInsufficientDriver)
    return text("the driver knows CUDA ", version(driver), ", and this build is of ", built_with());
  if (error == cudaErrorNoDevice) return "the driver shows no GPU";
  return cudaGetErrorString(error);
}

GpuHere described(int device) {
  return {cuda::attribute(cudaDevAttrComputeCapabilityMajor, device),
          cuda::attribute(cudaDevAttrComputeCapabilityMinor, device),
          cuda::attribute(cudaDevAttrMultiProcessorCount, device),
          has_warpgroups(device),
          cuda::attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          gpu::product_workspace};
}

}  // namespace

GpusHere gpus_here() {
  GpusHere out{built_with(), "", {}};
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    out.missing = reason(error == cudaSuccess ? cudaErrorNoDevice : error);
    cudaGetLastError();  // which would be told again
    return out;
  }
  for (int i = 0; i < count; ++i) out.all.push_back(described(i));
  return out;
}

std::int64_t free_on_gpu(int device) {
  std::size_t free = 0, all = 0;
  cuda::check(cudaSetDevice(device), "choosing a GPU");
  cuda::check(cudaMemGetInfo(&free, &all), "asking a GPU for its memory");
  return std::int64_t(free);
}

std::unique_ptr<Device> open_cuda(const CudaOptions& options) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    fail(Kind::usage, "device cuda: ", reason(error == cudaSuccess ? cudaErrorNoDevice : error), "; use cpu");
  }
  return std::make_unique<CudaDevice>(options);
}

std::unique_ptr<DeviceLines> lines_of_gpu(Device& device) {
  return std::make_unique<cuda::NcclLines>(dynamic_cast<CudaDevice&>(device));
}

std::string line_library() {
  const cuda::NcclLibrary library = cuda::nccl_library();
  int number = 0;
  if (!library.missing.empty()) return library.missing;
  if (library.version(&number) != ncclSuccess) return "NCCL does not say its version";
  const int major = number < 10000 ? 1000 : 10000;  // up to 2.8 there was less room between
  return text("NCCL ", number / major, ".", number % major / 100, ".", number % 100);
}

}  // namespace weft
