// When a profiler that runs beside a process looks, declared as NVIDIA's header does.
#pragma once

#include <cuda_runtime.h>

extern "C" {
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
}
