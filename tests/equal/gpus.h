// GPUs as a Cut opens them: the emulated one, or that of the machine.
#pragma once

#include <memory>

#include "weft/backend/cuda/device.h"

namespace weft::testing {

inline std::unique_ptr<Device> fast_gpu() { return std::make_unique<CudaDevice>(); }
inline std::unique_ptr<Device> exact_gpu() {
  return std::make_unique<CudaDevice>(CudaOptions{.exact = true});
}
inline std::unique_ptr<Device> by_graphs() {
  return std::make_unique<CudaDevice>(CudaOptions{.graphs = true});
}

}  // namespace weft::testing
