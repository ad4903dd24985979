// A build without nvcc knows no GPUs, and says so.
#include "weft/backend/gpus.h"
#include "weft/base/error.h"

namespace weft {
namespace {

constexpr auto missing = "this build has no CUDA, and docs/gpu.md says how one is made that has";

}  // namespace

GpusHere gpus_here() { return {.built_with = "", .missing = missing, .all = {}}; }

std::int64_t free_on_gpu(int device) { fail(Kind::usage, "device cuda:", device, ": ", missing); }

std::unique_ptr<Device> open_cuda(const CudaOptions&) {
  fail(Kind::usage, "device cuda: ", missing, "; use cpu");
}

std::unique_ptr<DeviceLines> lines_of_gpu(Device& device) {
  fail(Kind::internal, "device ", device.name(), " is no GPU: ", missing);
}

std::string line_library() { return missing; }

}  // namespace weft
