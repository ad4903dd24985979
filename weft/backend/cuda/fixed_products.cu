// Products of a fixed order, for exact mode: an element's bits follow from its row, its column and K alone,
// not from how many rows and columns a rank has. Small floats go by tensor cores, f32 by chains.
#include "weft/backend/cuda/fixed_products.h"

#include "weft/backend/cuda/chained_products.h"
#include "weft/backend/cuda/panel_products.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {
namespace {

struct FixedProduct {
  PanelResult out;
  Matrix a, b;
  std::int64_t m, k;
  int across, down;  // blocks of a matrix
};

template <class Half, bool a_by_depth, bool b_by_depth>
__global__ void __launch_bounds__(panel_threads, 2) multiply_in_order(FixedProduct job) {
  auto& shared = gpu::shared<PanelTurns<a_by_depth, b_by_depth>>();
  // Blocks that stand above each other come together, since they read the same columns of b.
  const int matrix = int(blockIdx.x) / (job.across * job.down);
  const int place = int(blockIdx.x) - matrix * job.across * job.down;
  const std::int64_t row = std::int64_t(place % job.down) * panel_width,
                     column = std::int64_t(place / job.down) * panel_width;
  const Matrix a = job.a.of(matrix), b = job.b.of(matrix);
  const PanelSource<a_by_depth> left(a_by_depth ? a.from(0, row, job.k) : a.from(row, 0, job.m));
  const PanelSource<b_by_depth> right(b_by_depth ? b.from(0, column, job.k)
                                                 : b.from(column, 0, job.out.width));
  multiply_panels<Half>(shared, left, right, {job.m - row, job.out.width - column, job.k});
  put_rows(job.out, shared.result,
           {.start = matrix * job.out.stack + row * job.out.stride,
            .bias = 0,
            .column = column,
            .rows = job.m - row});
}

template <class Half, bool a_by_depth, bool b_by_depth>
void launch(Queue& queue, const FixedProduct& job, std::int64_t matrices) {
  gpu::launch(queue,
              {matrices * job.across * job.down, panel_threads, sizeof(PanelTurns<a_by_depth, b_by_depth>)},
              multiply_in_order<Half, a_by_depth, b_by_depth>, job);
}
template <class Half>
void launch(Queue& queue, const FixedProduct& job, std::int64_t matrices, const MatmulArgs& how) {
  const bool a_by_depth = how.a == Read::transposed, b_by_depth = how.b == Read::as_is;
  if (a_by_depth)
    b_by_depth ? launch<Half, true, true>(queue, job, matrices)
               : launch<Half, true, false>(queue, job, matrices);
  else
    b_by_depth ? launch<Half, false, true>(queue, job, matrices)
               : launch<Half, false, false>(queue, job, matrices);
}

int blocks_of(std::int64_t elements) { return int((elements + panel_width - 1) / panel_width); }

}  // namespace

void multiply_in_fixed_order(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                             const MatmulArgs& how) {
  if (!is_half(a.dtype())) return multiply_in_chains(queue, out, a, b, how);
  const FixedProduct job{.out = panel_result(out, how),
                         .a = matrix_of(a),
                         .b = matrix_of(b),
                         .m = out.dim(-2),
                         .k = depth_of(a, how),
                         .across = blocks_of(out.dim(-1)),
                         .down = blocks_of(out.dim(-2))};
  const std::int64_t matrices = out.rank() == 3 ? out.dim(0) : 1;
  a.dtype() == Dtype::bf16 ? launch<bf16>(queue, job, matrices, how) : launch<f16>(queue, job, matrices, how);
}

}  // namespace weft::cuda
