#include "weft/backend/cuda/kernels.h"

#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/products.h"

namespace weft {

CudaKernels::CudaKernels(CudaDevice& device) : device_(&device) {}
CudaKernels::~CudaKernels() = default;

cuda::Queue& CudaKernels::queue() const { return device_->queue(); }
cuda::FaultWord* CudaKernels::faults() const { return device_->fault_word(); }

// From compute capability 9 on, as llm.c has it: on those before a product with gelu takes longer by what the
// walk would have taken.
bool CudaKernels::activates_products(Dtype dtype, Activation f) const {
  return is_half(dtype) && f == Activation::gelu && device_->capability() >= 9;
}

Tensor CudaKernels::workspace(const Shape& shape, Dtype dtype) const {
  return empty(*device_, shape, dtype, Use::workspace);
}

}  // namespace weft
