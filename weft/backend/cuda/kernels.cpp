#include "weft/backend/cuda/kernels.h"

#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/products.h"
#include "weft/backend/cuda/space.h"

namespace weft {

CudaKernels::CudaKernels(CudaDevice& device) : device_(&device) {}
CudaKernels::~CudaKernels() = default;

cuda::Queue& CudaKernels::queue() const { return device_->queue(); }
bool CudaKernels::warpgroups() const { return device_->warpgroups(); }
bool CudaKernels::exact() const { return device_->exact(); }
cuda::FaultWord* CudaKernels::faults() const { return device_->fault_word(); }

bool CudaKernels::activates_products(Dtype dtype, Activation f) const {
  return !exact() && cuda::gelu_in_products(dtype, f, device_->capability());
}

bool CudaKernels::multiplies_unseen_groups(Dtype dtype) const { return cuda::takes_unseen_groups(dtype); }

// A row lies in shared memory meanwhile.
bool CudaKernels::loses_in_one_walk(const Tensor& logits) const {
  const std::int64_t bytes = cuda::bytes_to_hold_row(logits);
  return bytes > 0 && bytes <= device_->most_shared();
}

Tensor CudaKernels::workspace(const Shape& shape, Dtype dtype) const {
  return empty(*device_, shape, dtype, Use::workspace);
}

}  // namespace weft
