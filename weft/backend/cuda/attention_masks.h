// Who sees whom in two tiles. Rows are queries and columns keys, or turned.
#pragma once

#include "weft/backend/cuda/attention_tiles.h"
#include "weft/backend/cuda/blackwell.h"

namespace weft::cuda {

/// What a kernel knows of all pairs of a job: that nothing but the masks' edges is to be asked of them, and
/// whom dropout takes; or nothing, where something is added, too, or cut into segments; or but that scores
/// have a cap, so that nothing is added. Who knows less has fewer registers for the rest.
enum class Pairs { plain, dropped, any, capped };
constexpr bool asks_all(Pairs pairs) { return pairs == Pairs::any || pairs == Pairs::capped; }
inline Pairs pairs_of(const Attend& a) {
  if (a.cap > 0) return Pairs::capped;
  if (a.query_segments || a.bias || !(a.scale > 0)) return Pairs::any;
  if (!a.samples) return Pairs::plain;
  return a.key0 % 4 == 0 ? Pairs::dropped : Pairs::any;
}
/// Blocks by warps that a multiprocessor is to have registers for. Those that draw spill for Blackwell where
/// it is to have three.
constexpr int blocks_at_once(int d, Pairs pairs) {
  return d > 64 || asks_all(pairs) || (blackwell && pairs == Pairs::dropped) ? 2 : 3;
}
/// Caps are for heads of 128 and of 256 channels, in which others fit (with_width): few models have any, and
/// these are the kernels that take nvcc longest.
constexpr bool may_be_capped(int d) { return d == 128 || d == 256; }
/// use(Knows<pairs>()), by what is known. Dropout in heads of more than 128 channels, which few models have,
/// goes with what is added: a third of the kernels is not there.
template <Pairs pairs>
struct Knows {};
template <int d, bool caps = false, class Use>
void with_pairs(const Attend& a, const Use& use) {
  switch (pairs_of(a)) {
    case Pairs::plain:
      return use(Knows<Pairs::plain>());
    case Pairs::dropped:
      if constexpr (d <= 128) return use(Knows<Pairs::dropped>());
      [[fallthrough]];
    case Pairs::any:
      return use(Knows<Pairs::any>());
    case Pairs::capped:
      if constexpr (caps) use(Knows<Pairs::capped>());
      return;
  }
}

/// What is to be asked of the pairs of two tiles, of masks: nothing, since every query sees every key; or on
/// which side of their edges they lie.
enum class Ask { nothing, edges };
template <int queries, int keys>
__device__ __forceinline__ Ask what_to_ask(const Attend& a, int query0, int key0) {
  if (query0 + queries > a.sq || key0 + keys > a.sk) return Ask::edges;
  if (a.causal && key0 + keys - 1 > query0 + a.diagonal) return Ask::edges;
  const bool inside = a.window == 0 || key0 > query0 + queries - 1 + a.diagonal - a.window;
  return inside ? Ask::nothing : Ask::edges;
}

/// The pair of a warp's element. At is that of the first row and column.
template <bool turned>
__device__ __forceinline__ Pair pair_at(const Pair& at, int row, int column) {
  Pair out = at;
  out.i += turned ? column : row;
  out.j += turned ? row : column;
  return out;
}

/// Columns of a tile between a row's edges: [first, last).
struct Columns {
  int first, last;
};
__device__ __forceinline__ int column_of(int from_first) {
  return from_first < 0 ? 0 : from_first > tile ? tile : from_first;
}
/// At the query and the first key of the tile; and turned, at the key and the first query.
__device__ __forceinline__ Columns keys_of(const Attend& a, const Pair& at) {
  const int last = column_of(a.last_key(at.i) - at.j);
  return {column_of(a.first_key(at.i) - at.j), at.i < a.sq ? last : 0};
}
__device__ __forceinline__ Columns queries_of(const Attend& a, const Pair& at) {
  const int first = a.causal ? at.j - a.diagonal : 0;
  const int last = a.window > 0 ? at.j - a.diagonal + a.window : a.sq;
  const int end = column_of((last < a.sq ? last : a.sq) - at.i);
  return {column_of(first - at.i), at.j < a.sk ? end : 0};
}
/// Of a thread's upper or lower row.
template <bool turned>
__device__ __forceinline__ Columns columns_at(const Attend& a, const Pair& at, int half) {
  const Pair start = pair_at<turned>(at, fragment_row(2 * half), 0);
  return turned ? queries_of(a, start) : keys_of(a, start);
}

/// Scores beyond the edges of the masks are none.
template <bool turned, int count>
__device__ __forceinline__ void hide(const Attend& a, const Pair& at, float (&s)[count][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Columns columns = columns_at<turned>(a, at, half);
    const int first = columns.first - fragment_column(0, 0), last = columns.last - fragment_column(0, 0);
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (8 * n + i < first || 8 * n + i >= last) s[n][2 * half + i] = -INFINITY;
  }
}

/// A bit for each of a thread's elements of a row in columns before this one, 4 n + i for element i of
/// fragment n.
__device__ __forceinline__ std::uint32_t bits_before(int column) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int fragments = (column - fragment_column(0, i) + 7) >> 3;
    const std::uint32_t end = fragments < 8 ? 1U << 4 * fragments : 0;
    bits |= ((end - 1) & 0x11111111U) << i;
  }
  return bits;
}

/// Those of the bits whose rows and columns are of one segment. Nobody is seen who is of none.
template <bool turned, int count>
__device__ __forceinline__ std::uint32_t of_one_segment(const Attend& a, const Pair& at, std::uint32_t bits) {
  const std::int32_t* of_queries = a.query_segments + at.b * a.query_line + at.i;
  const std::int32_t* of_keys = a.key_segments + at.b * a.key_line + at.j;
  const std::int32_t *of_rows = turned ? of_keys : of_queries, *of_columns = turned ? of_queries : of_keys;
  std::int32_t own[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool sees = bits >> 2 * half & 0x33333333U;  // so the row is there
    own[half] = sees ? of_rows[fragment_row(2 * half)] : -1;
    if (own[half] < 0) bits &= ~(0x33333333U << 2 * half);
  }
#pragma unroll
  for (int e = 0; e < 2 * count; ++e) {
    const int bit = e / 2 * 4 + e % 2;
    const std::int32_t segment = bits >> bit & 5 ? of_columns[fragment_column(e / 2, e)] : -1;
    bits &= ~(std::uint32_t(segment != own[0]) << bit | std::uint32_t(segment != own[1]) << (bit + 2));
  }
  return bits;
}

/// A bit for each element of a warp's d-fragments that is seen.
template <bool turned, int count>
__device__ __forceinline__ std::uint32_t seen(const Attend& a, const Pair& at) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Columns columns = columns_at<turned>(a, at, half);
    bits |= (bits_before(columns.last) & ~bits_before(columns.first)) << 2 * half;
  }
  return a.query_segments ? of_one_segment<turned, count>(a, at, bits) : bits;
}

}  // namespace weft::cuda
