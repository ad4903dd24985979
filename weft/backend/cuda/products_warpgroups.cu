// Products in groups of rows, and those of a fixed order, of small floats by warpgroups.
// only: sm_90a
#include "weft/backend/cuda/fixed_panels.h"
#include "weft/backend/cuda/grouped_products.h"
#include "weft/backend/cuda/panels_by_warpgroups.h"

namespace weft::cuda {

void multiply_groups_by_warpgroups(Queue& queue, const GroupedProduct& job, Dtype dtype,
                                   const MatmulArgs& how) {
  launch_groups<ByWarpgroups>(queue, job, dtype, how);
}

void multiply_in_order_by_warpgroups(Queue& queue, const Factors& of) {
  launch_in_order<ByWarpgroups>(queue, of);
}

}  // namespace weft::cuda
