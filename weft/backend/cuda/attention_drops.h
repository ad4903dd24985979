// Which pairs of two tiles dropout takes.
//
// Random numbers come four at a time, for keys beside each other, and cost more than all else of a pair. Two
// lanes have four keys of two queries, or turned four lanes of four: each draws for one, and they tell each
// other. What numbers of a row of the batch have in common is computed once a block.
#pragma once

#include "weft/backend/cuda/attention_masks.h"

namespace weft::cuda {

/// A bit for each element of a warp's d-fragments that is dropped, 4 n + i for element i of fragment n; at is
/// the pair of the first row and column.
template <bool turned, int count>
__device__ __forceinline__ std::uint32_t dropped_alone(const Attend& a, const Draw& draw, const Pair& at) {
  std::uint32_t bits = 0;
#pragma unroll 1
  for (int e = 0; e < 4 * count; ++e)
    if (a.kept(draw, pair_at<turned>(at, fragment_row(e % 4), fragment_column(e / 4, e))) == 0)
      bits |= 1U << e;
  return bits;
}

/// The same where the first key is a multiple of four; so many draws at once.
template <bool turned, int count, int at_once>
__device__ __forceinline__ std::uint32_t dropped_by_four(const Attend& a, const Draw& draw, const Pair& at) {
  const int lane = int(threadIdx.x) % 32, mine = turned ? lane / 4 % 4 : lane % 2;
  const int row = turned ? lane / 16 * 4 + mine / 2 * 8 : lane / 4 + mine * 8;
  const int column = turned ? lane % 4 * 2 + mine % 2 : lane % 4 / 2 * 4;
  const std::uint64_t first = a.block_of(pair_at<turned>(at, row, column));
  std::uint32_t drawn = 0;  // four bits for each fragment
#pragma unroll at_once
  for (int n = 0; n < count; ++n)
    drawn |= a.dropped_of_four(draw, first + std::uint64_t(n) * (turned ? blocks_of_a_query * 8 : 2))
             << 4 * n;
  if constexpr (turned) {
    std::uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      bits |= (__shfl_sync(~0U, drawn, (lane & ~12) | i * 4) >> mine & 0x11111111U) << i;
    return bits;
  } else {
    const std::uint32_t other = __shfl_xor_sync(~0U, drawn, 1);
    constexpr std::uint32_t low = 0x33333333U;
    return mine == 0 ? (drawn & low) | (other & low) << 2 : (other >> 2 & low) | (drawn & ~low);
  }
}

/// Of a kernel that knows so much; draw is that of the row of the batch, which those that know nothing have
/// no registers for.
template <Pairs pairs, bool turned, int count>
__device__ __forceinline__ std::uint32_t dropped(const Attend& a, const Draw& draw, const Pair& at) {
  if constexpr (pairs == Pairs::plain) return 0;
  if constexpr (asks_all(pairs)) {
    if (!a.samples) return 0;
    const Draw again = a.drawn(at);
    return a.key0 % 4 == 0 ? dropped_by_four<turned, count, 1>(a, again, at)
                           : dropped_alone<turned, count>(a, again, at);
  }
  return dropped_by_four<turned, count, 4>(a, draw, at);
}

}  // namespace weft::cuda
