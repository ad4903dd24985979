// Those threads of a block that say yes, in order.
#pragma once

#include <gpu.h>

namespace weft::cuda {

template <int warps>
struct Votes {
  int of_warp[warps];
};

/// How many of a block's votes stood before this thread's, and how many there are.
struct Ranks {
  int before, all;
};

/// All threads of a block of that many warps call it. Votes are used again at once, by it alone.
template <int warps>
__device__ __forceinline__ Ranks rank(bool yes, Votes<warps>& votes) {
  const unsigned of_mine = __ballot_sync(~0U, yes), lane = threadIdx.x % 32, mine = threadIdx.x / 32;
  __syncthreads();
  if (lane == 0) votes.of_warp[mine] = __popc(of_mine);
  __syncthreads();
  Ranks out{__popc(of_mine & ((1U << lane) - 1)), 0};
#pragma unroll
  for (unsigned warp = 0; warp < warps; ++warp) {
    if (warp < mine) out.before += votes.of_warp[warp];
    out.all += votes.of_warp[warp];
  }
  return out;
}

}  // namespace weft::cuda
