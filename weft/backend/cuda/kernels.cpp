#include "weft/backend/cuda/kernels.h"

#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/products.h"

namespace weft {

CudaKernels::CudaKernels(CudaDevice& device) : device_(&device) {}
CudaKernels::~CudaKernels() = default;

cuda::Queue& CudaKernels::queue() const { return device_->queue(); }
cuda::FaultWord* CudaKernels::faults() const { return device_->fault_word(); }
Tensor CudaKernels::workspace(const Shape& shape, Dtype dtype) const {
  return empty(*device_, shape, dtype, Use::workspace);
}

}  // namespace weft
