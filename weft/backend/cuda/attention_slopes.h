// Scores of attention that become slopes, and the rows that come of them: what both kinds of backward kernels
// share.
#pragma once

#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_part.h"

namespace weft::cuda {

template <int count>
using Scores = float[count][4];

/// What a query's scores, in powers of two, become probabilities and slopes by. No score makes a probability
/// where lse is infinite: of who sees nothing, and behind the last query.
struct OfQuery {
  float lse, delta;
};
__device__ __forceinline__ OfQuery numbers_of(const AttentionBackward& job, const Pair& at) {
  if (at.i >= job.attend.sq) return {INFINITY, 0};
  const std::int64_t query = job.attend.query_of(at);
  return {job.power[query], job.delta[query]};
}

/// A score and <dout, v> of a pair; what comes of them is its probability (times what is kept) and slope.
struct Slope {
  float p, ds;
};
/// bit is the pair's; unit brings its score to powers of two.
template <Pairs pairs, bool turned>
__device__ __forceinline__ Slope slope_of(const Part<pairs, turned>& part, int bit, const OfQuery& query,
                                          Slope from) {
  const float p = gpu::power_of_two(from.p * unit_of<pairs>(part.attend) - query.lse);
  const float kept = part.kept(bit), ds = p * (kept * from.ds - query.delta);
  return {p * kept, pairs == Pairs::capped ? ds * part.attend.slope_under_cap(from.p) : ds};
}

/// Scores and <dout, v> of rows that are queries become probabilities and slopes; query has those of this
/// thread.
template <Pairs pairs, int count>
__device__ __forceinline__ void slopes_of_queries(const Part<pairs, false>& part, Ask ask,
                                                  const OfQuery (&query)[2], float (&s)[count][4],
                                                  float (&along)[count][4]) {
  finish_scores(part, ask, s);
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Slope slope = slope_of(part, 4 * n + i, query[i / 2], {s[n][i], along[n][i]});
      s[n][i] = slope.p;
      along[n][i] = slope.ds;
    }
}

/// The same of rows that are keys; numbers are those of the query of column 0 and what follows, corrections
/// `rows` behind them.
template <int rows, Pairs pairs, int count>
__device__ __forceinline__ void slopes_of_keys(const Part<pairs, true>& part, Ask ask, const float* numbers,
                                               float (&s)[count][4], float (&along)[count][4]) {
  finish_scores(part, ask, s);
#pragma unroll
  for (int n = 0; n < count; ++n) {
    const int column = fragment_column(n, 0);
    const auto lse = gpu::load<float2>(numbers + column), delta = gpu::load<float2>(numbers + rows + column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const OfQuery query = i % 2 == 0 ? OfQuery{lse.x, delta.x} : OfQuery{lse.y, delta.y};
      const Slope slope = slope_of(part, 4 * n + i, query, {s[n][i], along[n][i]});
      s[n][i] = slope.p;
      along[n][i] = slope.ds;
    }
  }
}

template <int eights>
__device__ __forceinline__ void put_tile(const AttentionBackward& job, const Heads& to, const Stretch& rows,
                                         const float (&sums)[eights][4], float scale) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = rows.first + fragment_row(2 * half);
    if (row >= rows.length) continue;
    const std::int64_t start = to.at(row, rows.b, rows.g, rows.r);
#pragma unroll
    for (int n = 0; n < eights; ++n) {
      if (8 * n >= int(to.one.width)) continue;
      const std::int64_t at = start + fragment_column(n, 0);
      const float x = scale * sums[n][2 * half], y = scale * sums[n][2 * half + 1];
      if (job.accumulate)
        put_pair(to.one, at, x + get(to.one, at), y + get(to.one, at + 1));
      else
        put_pair(to.one, at, x, y);
    }
  }
}

}  // namespace weft::cuda
