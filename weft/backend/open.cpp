#include "weft/backend/open.h"

#include <charconv>

#include "weft/backend/cpu/device.h"
#include "weft/backend/cpu/product/check.h"
#include "weft/backend/gpus.h"
#include "weft/backend/meta/device.h"
#include "weft/base/error.h"

namespace weft {
namespace {

std::unique_ptr<Device> open_cpu(CpuKernels kernels, const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(CpuOptions{.threads = options.threads,
                                                .exact = options.exact,
                                                .memory_limit = options.memory_limit,
                                                .kernels = kernels,
                                                .times = options.times,
                                                .trials = options.trials,
                                                .plain_calls = options.plain_calls});
}

/// Behind "cuda:".
int number_in(std::string_view name) {
  const std::string_view digits = name.substr(name.find(':') + 1);
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0)
    fail(Kind::usage, "device ", name, ": expected cuda or cuda:N, N a number from 0 on");
  return number;
}

}  // namespace

bool names_gpu(std::string_view name) {
  if (name.starts_with("cuda:")) (void)number_in(name);
  return name == "cuda" || name.starts_with("cuda:");
}

int gpu_of_rank(std::string_view name, int place, int count) {
  if (name != "cuda") return number_in(name);
  return count > 0 ? place % count : 0;
}

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
                                                    .trials = options.trials,
                                                    .gpu = options.counts_for});
  if (names_gpu(name))
    return open_cuda({.device = gpu_of_rank(name, options.place, gpus_here().count()),
                      .exact = options.exact,
                      .memory_limit = options.memory_limit,
                      .graphs = options.graphs,
                      .warpgroups = options.warpgroups,
                      .times = options.times});
  fail(Kind::usage, "device ", name,
       ": unknown, expected cpu, cpu:onednn, cpu:fast, cpu:reference, cuda, cuda:N or meta");
}

}  // namespace weft
