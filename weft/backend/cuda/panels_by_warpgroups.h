// Products of panels by warpgroups, of compute capability 9.0 alone: two of them share a result of 128 x 256
// in halves of 64 rows. Tensor cores read both operands where they have come to, and always have one panel's
// products before them: those of the next begin before a thread waits for these.
#pragma once

#include <warpgroup.h>

#include "weft/backend/cuda/panel_products.h"

namespace weft::cuda {

struct ByWarpgroups {
  static constexpr int rows = 128, columns = 256, threads = 256, turns = 4, blocks_at_once = 1;
  static constexpr bool compiled = gpu::has_warpgroups;
  /// Pairs of panels that are under way. Where one comes to lay what was used two turns ago, and nobody reads
  /// it since the barrier of this turn.
  static constexpr int ahead = turns - 2;
  using Sums = float[columns / 8][4];  // 64 rows of the result, of which a warp has 16

  /// Of this warpgroup.
  static __device__ __forceinline__ int row0() { return int(threadIdx.x) / 128 * 64; }

  /// Its 64 rows of the left operand.
  template <bool by_depth>
  static __device__ __forceinline__ gpu::Matrix left_of(Panel<by_depth, rows>& panel) {
    return gpu::matrix_at(panel.piece(by_depth ? 0 : row0(), by_depth ? row0() / 8 : 0));
  }
  template <bool by_depth>
  static __device__ __forceinline__ gpu::Matrix right_of(Panel<by_depth, columns>& panel) {
    const gpu::Matrix first = gpu::matrix_at(panel.numbers);
    return by_depth ? gpu::spread(first, panel_depth * 64 * 2) : first;
  }
  /// Bytes from 16 that are summed over to the next.
  template <bool by_depth>
  static constexpr int sixteen = by_depth ? 16 * 64 * 2 : 16 * 2;

  /// sums += left right, of this warpgroup's rows.
  template <class Half, bool left_by_depth, bool right_by_depth>
  static __device__ __forceinline__ void add_product(
      Sums& sums, PanelPair<ByWarpgroups, left_by_depth, right_by_depth>& of) {
    const gpu::Matrix left = left_of(of.left), right = right_of(of.right);
#pragma unroll
    for (int k = 0; k < panel_depth / 16; ++k)
      gpu::multiply_panels<Half, left_by_depth, right_by_depth>(
          sums, gpu::further(left, k * sixteen<left_by_depth>),
          gpu::further(right, k * sixteen<right_by_depth>));
  }

  static __device__ __forceinline__ void put(Square<ByWarpgroups>& to, const Sums& sums) {
    const int lane = int(threadIdx.x) % 32, row = int(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
    for (int n = 0; n < columns / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        gpu::store(to.piece(row + 8 * half, n) + lane % 4 * 2,
                   float2{sums[n][2 * half], sums[n][2 * half + 1]});
  }

  template <class Half, bool left_by_depth, bool right_by_depth>
  static __device__ __forceinline__ void multiply(
      PanelTurns<ByWarpgroups, left_by_depth, right_by_depth>& shared,
      PanelSources<ByWarpgroups, left_by_depth, right_by_depth>& from, const PanelExtent& have) {
    const int count = have.panels();
    const auto fetch = [&](int t) {
      if (t < count) from.fetch(shared.turns[t % turns]);
      gpu::commit_copies();
    };
    for (int t = 0; t < ahead; ++t) fetch(t);
    Sums sums = {};
    for (int t = 0; t < count; ++t) {
      gpu::wait_copies<ahead - 1>();
      gpu::show_products();
      __syncthreads();
      gpu::begin_products();
      add_product<Half>(sums, shared.turns[t % turns]);
      gpu::commit_products();
      fetch(t + ahead);
      gpu::wait_products<1>();
    }
    gpu::wait_products<0>();
    gpu::wait_copies<0>();
    __syncthreads();
    put(shared.result, sums);
    __syncthreads();
  }
};

}  // namespace weft::cuda
