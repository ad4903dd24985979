// Products of a fixed order, for exact mode: an element's bits follow from its row, its column and K alone,
// not from how many rows and columns a rank has. These are of small floats, by warps.
#include "weft/backend/cuda/fixed_panels.h"
#include "weft/backend/cuda/panels_by_warps.h"

namespace weft::cuda {

void multiply_in_order_by_warps(Queue& queue, const Factors& of) { launch_in_order<ByWarps>(queue, of); }

}  // namespace weft::cuda
