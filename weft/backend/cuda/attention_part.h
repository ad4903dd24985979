// Columns that pass by a warp's rows: what is to be asked of their pairs, and what then becomes of their
// scores. Each kernel asks before its products or behind them, wherever it has registers for it.
#pragma once

#include "weft/backend/cuda/attention_drops.h"
#include "weft/backend/cuda/attention_masks.h"

namespace weft::cuda {

/// At is the pair of the first column and of the first row; bits of each element that is seen, where more is
/// to be asked than masks' edges, and that is dropped.
template <Pairs pairs, bool turned>
struct Part {
  const Attend& attend;
  const Pair& at;
  std::uint32_t seen, dropped;

  /// What a probability is multiplied with.
  __device__ __forceinline__ float kept(int bit) const {
    if (pairs == Pairs::plain || (asks_all(pairs) && !attend.samples)) return 1;
    return dropped >> bit & 1 ? 0 : attend.factor;
  }
};
template <Pairs pairs, bool turned, int count>
__device__ __forceinline__ Part<pairs, turned> part_at(const Attend& a, const Draw& draw, const Pair& at) {
  return {a, at, asks_all(pairs) ? seen<turned, count>(a, at) : 0,
          dropped<pairs, turned, count>(a, draw, at)};
}

/// What scores are in powers of two when they are finished.
template <Pairs pairs>
__device__ __forceinline__ float unit_of(const Attend& a) {
  return pairs == Pairs::capped || (pairs == Pairs::any && (a.bias || !(a.scale > 0))) ? 1 : a.unit;
}

/// Where what is added to scores lies, if anything is: of column 0; behind this for the columns of a key,
/// before it for those of a query, and only of those that are seen.
__device__ __forceinline__ const float* bias_of(const Attend& a, const Pair& at) {
  return a.bias + a.head_of(at) * a.distances + at.i - at.j + a.bias0;
}
template <bool turned, int count>
__device__ __forceinline__ void add_bias(const Part<Pairs::any, turned>& part, float (&s)[count][4]) {
  const Attend& a = part.attend;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* bias = bias_of(a, pair_at<turned>(part.at, fragment_row(2 * half), 0));
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const int column = fragment_column(n, i);
        const float added = part.seen >> (4 * n + i) & 1 ? bias[turned ? column : -column] : 0;
        s[n][i] = (s[n][i] * a.scale + added) * log2_e;
      }
  }
}

/// Scores with what is added, or under their cap, and no one who is not seen.
template <Pairs pairs, bool turned, int count>
__device__ __forceinline__ void finish_scores(const Part<pairs, turned>& part, Ask ask,
                                              float (&s)[count][4]) {
  const Attend& a = part.attend;
  if constexpr (!asks_all(pairs)) {
    if (ask == Ask::edges) hide<turned>(a, part.at, s);
    return;
  }
  if constexpr (pairs == Pairs::any)
    if (a.bias) add_bias(part, s);
  const float turns = a.bias || a.scale > 0 ? 1 : a.unit;
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float score = pairs == Pairs::capped ? a.capped(s[n][i] * a.unit) : s[n][i] * turns;
      s[n][i] = part.seen >> (4 * n + i) & 1 ? score : -INFINITY;
    }
}

}  // namespace weft::cuda
