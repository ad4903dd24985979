// Products of small floats in a fixed order by panels, in either way (panel_products.h).
#pragma once

#include "weft/backend/cuda/panel_products.h"
#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {

struct FixedProduct {
  PanelResult out;
  Matrix a, b;
  std::int64_t m, k;
};

template <class Way, class Half, bool a_by_depth, bool b_by_depth>
__global__ void __launch_bounds__(Way::threads, Way::blocks_at_once) multiply_in_order(FixedProduct job) {
  if constexpr (!Way::compiled) return;
  auto& shared = gpu::shared<PanelTurns<Way, a_by_depth, b_by_depth>>();
  // Blocks that stand above each other come together, since they read the same columns of b.
  const int across = blocks_of(job.out.width, Way::columns), down = blocks_of(job.m, Way::rows);
  const int matrix = int(blockIdx.x) / (across * down), place = int(blockIdx.x) - matrix * across * down;
  const std::int64_t row = std::int64_t(place % down) * Way::rows,
                     column = std::int64_t(place / down) * Way::columns;
  const Matrix a = job.a.of(matrix), b = job.b.of(matrix);
  PanelSources<Way, a_by_depth, b_by_depth> from(
      a_by_depth ? a.from(0, row, job.k) : a.from(row, 0, job.m),
      b_by_depth ? b.from(0, column, job.k) : b.from(column, 0, job.out.width));
  Way::template multiply<Half>(shared, from, {job.m - row, job.out.width - column, job.k});
  put_rows(job.out, shared.result,
           {.start = matrix * job.out.stack + row * job.out.stride,
            .bias = 0,
            .column = column,
            .rows = job.m - row});
}

/// A product as Kernels::matmul takes it, without slabs.
struct Factors {
  const Tensor &out, &a, &b;
  const MatmulArgs& how;
};

template <class Way, class Half, bool a_by_depth, bool b_by_depth>
void launch_in_order(Queue& queue, const Factors& of) {
  const FixedProduct job{.out = panel_result(of.out, of.how),
                         .a = matrix_of(of.a),
                         .b = matrix_of(of.b),
                         .m = of.out.dim(-2),
                         .k = depth_of(of.a, of.how)};
  const std::int64_t matrices = of.out.rank() == 3 ? of.out.dim(0) : 1;
  const std::int64_t blocks = matrices * blocks_of(job.out.width, Way::columns) * blocks_of(job.m, Way::rows);
  gpu::launch(queue, {blocks, Way::threads, sizeof(PanelTurns<Way, a_by_depth, b_by_depth>)},
              multiply_in_order<Way, Half, a_by_depth, b_by_depth>, job);
}
template <class Way, class Half>
void launch_in_order_of(Queue& queue, const Factors& of) {
  const bool a_by_depth = of.how.a == Read::transposed, b_by_depth = of.how.b == Read::as_is;
  if (a_by_depth)
    b_by_depth ? launch_in_order<Way, Half, true, true>(queue, of)
               : launch_in_order<Way, Half, true, false>(queue, of);
  else
    b_by_depth ? launch_in_order<Way, Half, false, true>(queue, of)
               : launch_in_order<Way, Half, false, false>(queue, of);
}
template <class Way>
void launch_in_order(Queue& queue, const Factors& of) {
  of.a.dtype() == Dtype::bf16 ? launch_in_order_of<Way, bf16>(queue, of)
                              : launch_in_order_of<Way, f16>(queue, of);
}

void multiply_in_order_by_warps(Queue& queue, const Factors& of);
/// Which some GPUs have.
void multiply_in_order_by_warpgroups(Queue& queue, const Factors& of);

}  // namespace weft::cuda
