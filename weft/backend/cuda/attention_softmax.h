// Scores of attention that become probabilities, and the rows that come of them: what both kinds of forward
// kernels share.
#pragma once

#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_part.h"

namespace weft::cuda {

struct Softmax {  // of rows fragment_row(0) and fragment_row(2), in powers of two
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};

/// What rows of sums are multiplied with, to be brought to a new maximum.
struct Shrink {
  float by[2];
};
/// Scores, which times unit (above zero) are in powers of two, become probabilities under the new maximum.
template <int count>
__device__ __forceinline__ Shrink soften(Softmax& state, float unit, float (&s)[count][4]) {
  Shrink out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float max = -INFINITY;
#pragma unroll
    for (int n = 0; n < count; ++n) max = fmaxf(max, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    max = fmaxf(max, __shfl_xor_sync(~0U, max, 1));
    max = fmaxf(max, __shfl_xor_sync(~0U, max, 2));
    max = fmaxf(state.max[half], max * unit);
    const float base = max == -INFINITY ? 0 : max;
    out.by[half] = gpu::power_of_two(state.max[half] - base);
    state.max[half] = max;
    state.sum[half] *= out.by[half];
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        s[n][i] = gpu::power_of_two(s[n][i] * unit - base);
        state.sum[half] += s[n][i];
      }
  }
  return out;
}
template <int eights>
__device__ __forceinline__ void shrink_rows(const Shrink& shrink, float (&o)[eights][4]) {
#pragma unroll
  for (int n = 0; n < eights; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) o[n][i] *= shrink.by[i / 2];
}

/// Probabilities times what is kept of them.
template <Pairs pairs, int count>
__device__ __forceinline__ void drop(const Part<pairs, false>& part, float (&p)[count][4]) {
  if constexpr (pairs == Pairs::plain) return;
  if (part.attend.samples) {
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        p[n][i] = part.dropped >> (4 * n + i) & 1 ? 0 : p[n][i] * part.attend.factor;
  }
}

template <int eights>
__device__ __forceinline__ void put_rows(const FastForward& job, Pair at, const Softmax& state,
                                         const float (&o)[eights][4]) {
  const int query0 = at.i;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = state.sum[half];
    sum += __shfl_xor_sync(~0U, sum, 1);
    sum += __shfl_xor_sync(~0U, sum, 2);
    at.i = query0 + fragment_row(2 * half);
    if (at.i >= job.attend.sq) continue;
    const float share = sum == 0 ? 0 : 1 / sum;
    const std::int64_t to = job.o.at(at.i, at.b, at.g, at.r);
#pragma unroll
    for (int n = 0; n < eights; ++n)
      if (8 * n < int(job.o.one.width))
        put_pair(job.o.one, to + fragment_column(n, 0), o[n][2 * half] * share, o[n][2 * half + 1] * share);
    if (threadIdx.x % 4 != 0) continue;
    const std::int64_t query = job.attend.query_of(at);
    put(job.lse, start_of(job.lse, query), sum == 0 ? -INFINITY : (state.max[half] + log2f(sum)) / log2_e);
    if (job.greatest.data)
      put(job.greatest, start_of(job.greatest, query), greatest_of(state.max[half] / log2_e, sum));
  }
}

}  // namespace weft::cuda
