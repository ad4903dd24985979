// Scores of attention that become slopes, and the rows that come of them: what both kinds of backward kernels
// share.
#pragma once

#include "weft/backend/cuda/attention_drops.h"
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_tiles.h"

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

/// Columns that pass by a warp: the pair of the first one and of the first row; whether they reach beyond the
/// masks' edges, and where more is to be asked a bit for each element that is seen and that is dropped.
template <Pairs pairs>
struct Part {
  const Attend& attend;
  const Pair& at;
  bool edges;
  std::uint32_t seen, dropped;
};
template <Pairs pairs, bool turned, int count>
__device__ __forceinline__ Part<pairs> part_at(const Attend& a, const Draw& draw, const Pair& at, Ask ask) {
  return {a, at, ask == Ask::edges, pairs == Pairs::any ? seen<turned, count>(a, at) : 0,
          dropped<pairs, turned, count>(a, draw, at)};
}

/// A score and <dout, v> of a pair; what comes of them is its probability (times what is kept) and slope.
struct Slope {
  float p, ds;
};
__device__ __forceinline__ Slope slope_of(float p, float kept, float along, const OfQuery& query) {
  return {p * kept, p * (kept * along - query.delta)};
}
/// bit is the pair's; bias is added where it is seen, if anything is.
__device__ __forceinline__ Slope slope_at(const Part<Pairs::any>& part, int bit, const OfQuery& query,
                                          const float* bias, Slope from) {
  const Attend& a = part.attend;
  const bool seen = part.seen >> bit & 1;
  const float p = seen ? exp2f((from.p * a.scale + (a.bias ? *bias : 0)) * log2_e - query.lse) : 0;
  const float kept = !a.samples ? 1 : part.dropped >> bit & 1 ? 0 : a.factor;
  return slope_of(p, kept, from.ds, query);
}

/// The same where nothing is added and all who are not seen are hidden; unit brings scores to powers of two.
template <Pairs pairs>
__device__ __forceinline__ Slope slope_at(const Part<pairs>& part, int bit, const OfQuery& query,
                                          Slope from) {
  const float p = gpu::power_of_two(from.p * part.attend.unit - query.lse);
  const float kept = pairs == Pairs::plain ? 1 : part.dropped >> bit & 1 ? 0 : part.attend.factor;
  return slope_of(p, kept, from.ds, query);
}

/// Scores and <dout, v> of rows that are queries become probabilities and slopes; query has those of this
/// thread.
template <Pairs pairs, int count>
__device__ __forceinline__ void slopes_of_queries(const Part<pairs>& part, const OfQuery (&query)[2],
                                                  float (&s)[count][4], float (&along)[count][4]) {
  if (part.edges) hide<false>(part.attend, part.at, s);
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Slope slope = slope_at(part, 4 * n + i, query[i / 2], {s[n][i], along[n][i]});
      s[n][i] = slope.p;
      along[n][i] = slope.ds;
    }
}
template <int count>
__device__ __forceinline__ void slopes_of_queries(const Part<Pairs::any>& part, const OfQuery (&query)[2],
                                                  float (&s)[count][4], float (&along)[count][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* bias = bias_of(part.attend, pair_at<false>(part.at, fragment_row(2 * half), 0));
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const float* added = bias - fragment_column(n, i);
        const Slope slope = slope_at(part, 4 * n + i, query[half], added, {s[n][i], along[n][i]});
        s[n][i] = slope.p;
        along[n][i] = slope.ds;
      }
  }
}

/// The same of rows that are keys; numbers are those of the query of column 0 and what follows, corrections
/// `rows` behind them.
template <int rows, Pairs pairs, int count>
__device__ __forceinline__ void slopes_of_keys(const Part<pairs>& part, const float* numbers,
                                               float (&s)[count][4], float (&along)[count][4]) {
  if (part.edges) hide<true>(part.attend, part.at, s);
#pragma unroll
  for (int n = 0; n < count; ++n) {
    const int column = fragment_column(n, 0);
    const auto lse = gpu::load<float2>(numbers + column), delta = gpu::load<float2>(numbers + rows + column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const OfQuery query = i % 2 == 0 ? OfQuery{lse.x, delta.x} : OfQuery{lse.y, delta.y};
      const Slope slope = slope_at(part, 4 * n + i, query, {s[n][i], along[n][i]});
      s[n][i] = slope.p;
      along[n][i] = slope.ds;
    }
  }
}
template <int rows, int count>
__device__ __forceinline__ void slopes_of_keys(const Part<Pairs::any>& part, const float* numbers,
                                               float (&s)[count][4], float (&along)[count][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* bias = bias_of(part.attend, pair_at<true>(part.at, fragment_row(2 * half), 0));
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const int column = fragment_column(n, i);
        const OfQuery query{numbers[column], numbers[rows + column]};
        const Slope slope = slope_at(part, 4 * n + i, query, bias + column, {s[n][i], along[n][i]});
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
