// Sums of slopes by distance, for the gradient of what is added to scores by distance. A block of queries has
// a line of its own for all distances to its keys, and lines are added in order, so nothing depends on who
// came first.
#pragma once

#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_tiles.h"

namespace weft::cuda {

/// A block's, of as many as [b, n] has tiles of queries: zeros, behind the next barrier.
__device__ __forceinline__ float* begin_line(const AttentionBackward& job, const Pair& head, int number,
                                             int tiles) {
  const Attend& a = job.attend;
  const std::int64_t before = std::int64_t(head.b * a.groups * a.heads + a.head_of(head)) * tiles + number;
  float* line = job.lines + before * line_length(a.sk);
  for (int i = int(threadIdx.x); i < int(line_length(a.sk)); i += tile_threads) line[i] = 0;
  return line;
}

/// Slopes of a block's queries and of the columns that it works on at once, a column apart so that those of
/// one distance are in different banks.
template <int count>
struct Slanted {
  static constexpr int columns = 8 * count;
  float of[tile][columns + 1];
};
template <int count>
__device__ __forceinline__ void put_slopes(Slanted<count>& to, int row0, const float (&slopes)[count][4]) {
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) to.of[row0 + fragment_row(i)][fragment_column(n, i)] = slopes[n][i];
}
/// A thread has one distance of them, and begin is where in the line that of row 0 and column 0 lies. Keys
/// behind the last have no slopes, and no place.
template <int count>
__device__ __forceinline__ void add_slopes(float* line, int begin, const Slanted<count>& slopes) {
  constexpr int columns = Slanted<count>::columns;
  const int down = int(threadIdx.x) - (columns - 1);  // row - column
  if (down >= tile || begin + down < 0) return;
  float sum = 0;
#pragma unroll 4
  for (int column = down < 0 ? -down : 0; column < columns && column + down < tile; ++column)
    sum += slopes.of[column + down][column];
  line[begin + down] += sum;
}
template <int count>
__device__ __forceinline__ void add_by_distance(float* line, int begin, Slanted<count>& scratch, int row0,
                                                const float (&slopes)[count][4]) {
  put_slopes(scratch, row0, slopes);
  __syncthreads();
  add_slopes(line, begin, scratch);
  __syncthreads();
}

}  // namespace weft::cuda
