// The workspaces of the processor's kernels, asked for and given back.
#include "weft/backend/meta/kernels.h"

namespace weft {

void MetaKernels::matmul(const Tensor&, const Tensor&, const Tensor&, const MatmulArgs&) {}
void MetaKernels::grouped_matmul(const Tensor&, const Tensor&, const Tensor&, Groups, const MatmulArgs&) {}
std::int64_t MetaKernels::packed_bytes(const Tensor&, Read) { return 0; }
void MetaKernels::pack(const Tensor&, const Tensor&, Read) {}

}  // namespace weft
