// Products in groups of rows, as experts ask for them: all groups in one launch, small floats by tensor
// cores. The library is asked once a group, of f32 whose groups the host knows.
#include "weft/backend/cuda/grouped_products.h"

#include "weft/backend/cuda/chained_products.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/group_calls.h"
#include "weft/backend/cuda/group_sums.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/panels_by_warps.h"
#include "weft/backend/cuda/space.h"

namespace weft {

void CudaKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                                 const MatmulArgs& how) {
  if (out.elements() == 0) return;
  const bool sums = cuda::sums_columns(a, how);
  if (!sums && cuda::groups_by_calls(a.dtype(), groups))
    return cuda::a_call_a_group({out, a, b, groups, how}, [this](const auto&... one) { matmul(one...); });
  const std::int64_t count = groups.count();
  Tensor offsets = groups.unseen;
  if (!offsets) {  // nothing is waited for: the host's numbers have been taken when this returns
    offsets = workspace({count + 1}, Dtype::i64);
    device_->copy_from_host(*offsets.storage(), 0, groups.offsets.data(), offsets.bytes()).wait();
  }
  if (sums) return cuda::sum_groups(queue(), out, {b, a, offsets, how.accumulate});
  if (!is_half(a.dtype()))
    return cuda::multiply_groups_in_chains(queue(), out, a, b, {.offsets = offsets, .product = how});
  const cuda::GroupedProduct job{.out = cuda::panel_result(out, how),
                                 .a = cuda::matrix_of(a),
                                 .b = cuda::matrix_of(b),
                                 .m = out.dim(-2),
                                 .k = how.a == Read::transposed ? 0 : a.dim(1),
                                 .offsets = cuda::elements<std::int64_t>(offsets),
                                 .groups = count};
  if (warpgroups()) return cuda::multiply_groups_by_warpgroups(queue(), job, a.dtype(), how);
  cuda::launch_groups<cuda::ByWarps>(queue(), job, a.dtype(), how);
}

}  // namespace weft
