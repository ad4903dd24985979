// The workspaces of the processor's kernels, asked for and given back.
#include "weft/backend/meta/kernels.h"

#include "weft/backend/cpu/product/kernels.h"

namespace weft {

void MetaKernels::matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  device_->allocate(product::matmul_bytes(out, a, b, how, device_->threads()), Use::workspace);
}

void MetaKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, Groups,
                                 const MatmulArgs& how) {
  device_->allocate(product::grouped_bytes(out, a, b, how, device_->threads()), Use::workspace);
}

std::int64_t MetaKernels::packed_bytes(const Tensor& w, Read read) {
  return product::packed_bytes(w.dim(read == Read::as_is ? 0 : 1), w.dim(read == Read::as_is ? 1 : 0));
}

void MetaKernels::pack(const Tensor&, const Tensor&, Read) {}

}  // namespace weft
