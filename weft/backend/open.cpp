// A table of names, and refusals for those that another build might know.
#include "weft/backend/open.h"

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/product/check.h"
#include "weft/backend/meta/device.h"
#include "weft/base/error.h"

namespace weft {
namespace {

std::unique_ptr<Device> open_cpu(CpuKernels kernels, const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(CpuOptions{.threads = options.threads,
                                                .exact = options.exact,
                                                .memory_limit = options.memory_limit,
                                                .kernels = kernels,
                                                .trials = options.trials,
                                                .plain_calls = options.plain_calls});
}

}  // namespace

std::shared_ptr<ProductTrials> new_trials() { return std::make_shared<ProductTrials>(); }

std::unique_ptr<Device> open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "cpu") return open_cpu(CpuKernels::best, options);
  if (name == "cpu:onednn") return open_cpu(CpuKernels::onednn, options);
  if (name == "cpu:fast") return open_cpu(CpuKernels::fast, options);
  if (name == "cpu:reference") return open_cpu(CpuKernels::reference, options);
  if (name == "meta")
    return std::make_unique<MetaDevice>(MetaOptions{.threads = options.threads,
                                                    .exact = options.exact,
                                                    .memory_limit = options.memory_limit,
                                                    .trials = options.trials});
  if (name == "cuda" || name.starts_with("cuda:"))
    fail(Kind::usage, "device ", name, ": this build has no CUDA; use cpu");
  fail(Kind::usage, "device ", name, ": unknown, expected cpu, cpu:onednn, cpu:fast, cpu:reference or meta");
}

}  // namespace weft
