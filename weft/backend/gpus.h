// The GPUs that this build can use: CUDA's where nvcc compiled the kernels, an emulated one in tests, else
// none. One of three libraries defines these functions, and the build says which.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/tensor/device.h"
#include "weft/tensor/line.h"

namespace weft {

struct WorkTimes;

/// What a GPU's kernels take at most of a head's channels, and those of attention by warpgroups.
inline constexpr std::int64_t widest_gpu_head = 256, widest_warpgroup_head = 128;

struct CudaOptions {
  int device = 0;                 // which GPU of the machine
  bool exact = false;             // products have a fixed order
  std::int64_t memory_limit = 0;  // bytes, 0: none but the GPU's
  bool graphs = false;            // launches that came before are asked for in one call
  bool warpgroups = false;        // products by warpgroups, where the GPU has them (GpuHere)
  WorkTimes* times = nullptr;     // what each kind of work takes is added here; null: nobody looks
};

struct GpuHere {
  int major = 0, minor = 0;  // compute capability
  int units = 0;             // multiprocessors
  bool warpgroups = false;  // whether it multiplies by them, and this build too: compute capability 9.0 alone
  std::int64_t most_shared = 0;    // bytes of shared memory that a block may have
  std::int64_t product_space = 0;  // bytes that the library of products works in
};
/// What is counted for where no GPU is there to ask: an H100.
inline constexpr GpuHere gpu_elsewhere{.major = 9,
                                       .minor = 0,
                                       .units = 132,
                                       .warpgroups = true,
                                       .most_shared = 227 << 10,
                                       .product_space = std::int64_t(32) << 20};

struct GpusHere {
  std::string built_with;  // "CUDA 13.0", "an emulated GPU"; empty: this build knows no GPUs
  std::string missing;     // why there is none; empty where there is one
  std::vector<GpuHere> all;

  int count() const { return int(all.size()); }
};

/// What there is, without taking anything of it. Fails never.
GpusHere gpus_here();
/// Bytes of one that nobody has. Who asks takes a little of it for as long as the process lives.
std::int64_t free_on_gpu(int device);

/// Fails with Kind::usage where there is no such GPU, or no GPUs in this build.
std::unique_ptr<Device> open_cuda(const CudaOptions& options);

/// What a device of open_cuda() has for reaching other GPUs by itself; it outlives that.
std::unique_ptr<DeviceLines> lines_of_gpu(Device& device);
/// Which library carries words from GPU to GPU here: "NCCL 2.28.3", or why none does.
std::string line_library();

}  // namespace weft
