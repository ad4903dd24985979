// The greatest of a row, one after the other, by a warp.
#pragma once

#include <gpu.h>

#include <cstdint>

namespace weft::cuda {

/// A candidate: its value, with NaN as the greatest so that it is seen, and its place; none where at < 0.
template <class Float>
struct Best {
  Float value = 0;
  int at = -1;
};
/// Whether a comes before b: greater, or as great and earlier. Of places that differ, one comes before the
/// other.
template <class Float>
__device__ __forceinline__ bool before(Best<Float> a, Best<Float> b) {
  if (a.at < 0 || b.at < 0) return a.at >= 0;
  return a.value > b.value || (a.value == b.value && a.at < b.at);
}
template <class Float>
__device__ __forceinline__ Best<Float> candidate(Float value, int at) {
  return {isnan(value) ? Float(INFINITY) : value, at};
}

/// The best of value(first), value(first + step), … below n that come after last; all of them where last is
/// none.
template <class Float, class Value>
__device__ __forceinline__ Best<Float> best_after(Best<Float> last, int first, int n, int step, Value value) {
  Best<Float> best;
  for (int j = first; j < n; j += step) {
    const Best<Float> here = candidate(value(j), j);
    if ((last.at < 0 || before(last, here)) && before(here, best)) best = here;
  }
  return best;
}

/// The same over value(0) … value(n - 1) by a whole warp; every lane gets it.
template <class Float, class Value>
__device__ __forceinline__ Best<Float> next_best(Best<Float> last, int n, Value value) {
  Best<Float> best = best_after(last, int(threadIdx.x) % 32, n, 32, value);
#pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    const Best<Float> other{__shfl_xor_sync(~0U, best.value, by), __shfl_xor_sync(~0U, best.at, by)};
    if (before(other, best)) best = other;
  }
  return best;
}

}  // namespace weft::cuda
