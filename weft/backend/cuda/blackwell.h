// Whether a kernel is compiled for GPUs from compute capability 10 on: there nvcc takes more registers for
// the same source, and spills sooner.
#pragma once

namespace weft::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
inline constexpr bool blackwell = true;
#else
inline constexpr bool blackwell = false;
#endif

}  // namespace weft::cuda
