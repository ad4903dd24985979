// What tests ask of the emulator, where a GPU of this machine does the work: whether it found anything, and
// to be late.
#include <cuda_runtime.h>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/runtime.h"

namespace emulated {

/// The first thing that the GPU could not do: all that follows it fails with the same.
std::vector<std::string> take_reports() {
  const cudaError_t error = cudaDeviceSynchronize();
  return error == cudaSuccess ? std::vector<std::string>{}
                              : std::vector<std::string>{cudaGetErrorString(error)};
}

/// A GPU has one of its own.
void set_pace(unsigned) {}

}  // namespace emulated
