// Products of tiles by warpgroups, of compute capability 9.0 alone: four warps have 64 rows of a result, a
// warp 16 of them in d-fragments as attention_tiles.h has them. Several begin together and end where they are
// waited for: begin_products(), these, commit_products(), wait_products().
#pragma once

#include <warpgroup.h>

#include "weft/backend/cuda/attention_tiles.h"

namespace weft::cuda {

/// Channels of a job's heads, those of values too.
inline std::int64_t widest(const Attend& job) {
  return job.q.one.width > job.v.one.width ? job.q.one.width : job.v.one.width;
}

/// The first of this warpgroup's 64 rows of its block's, and of this warp's of those.
__device__ __forceinline__ int group_row() { return int(threadIdx.x) / tile_threads * tile; }
__device__ __forceinline__ int warp_row() { return int(threadIdx.x) % tile_threads / 32 * 16; }

/// Where 64 columns of a tile's rows begin, from a row on that is a multiple of 8.
template <int d, int rows>
__device__ __forceinline__ gpu::Matrix panel_of(Tile<d, rows>& from, int row, int panel) {
  return gpu::matrix_at(from.numbers + (panel * rows + row) * 64);
}

/// s [64, 8 count] = this warpgroup's rows of a times rows [row, row + 8 count) of b, summed over d.
template <class Half, int d, int own, int rows, int count>
__device__ __forceinline__ void multiply_rows(float (&s)[count][4], Tile<d, own>& a, Tile<d, rows>& b,
                                              int row = 0) {
#pragma unroll
  for (int panel = 0; panel < d / 64; ++panel) {
    const gpu::Matrix left = panel_of(a, group_row(), panel), right = panel_of(b, row, panel);
    if (panel == 0)
      gpu::multiply_rows<Half, false>(s, left, right);
    else
      gpu::multiply_rows<Half, true>(s, left, right);
#pragma unroll
    for (int column = 1; column < 4; ++column)
      gpu::multiply_rows<Half, true>(s, gpu::further(left, 32 * column), gpu::further(right, 32 * column));
  }
}

/// Rounded, as left operands of 16 columns each: two d-fragments are one a-fragment.
template <int count>
struct Halves {
  std::uint32_t of[count / 2][4];
};
template <class Half, int count>
__device__ __forceinline__ void pack(Halves<count>& to, const float (&from)[count][4]) {
#pragma unroll
  for (int i = 0; i < count / 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      to.of[i][j] = gpu::pack<Half>(from[2 * i + j / 2][j % 2 * 2], from[2 * i + j / 2][j % 2 * 2 + 1]);
}

/// o [64, d] += p [64, 8 count] times rows [row, row + 8 count) of v.
template <class Half, int d, int rows, int count>
__device__ __forceinline__ void multiply_columns(float (&o)[d / 8][4], const Halves<count>& p,
                                                 Tile<d, rows>& v, int row = 0) {
#pragma unroll
  for (int i = 0; i < count / 2; ++i) {
    gpu::multiply_columns<Half, 0>(o, p.of[i], panel_of(v, row + 16 * i, 0));
    if constexpr (d > 64) gpu::multiply_columns<Half, 8>(o, p.of[i], panel_of(v, row + 16 * i, 1));
  }
}

}  // namespace weft::cuda
