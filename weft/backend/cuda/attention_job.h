// What attention's kernels share: where operands lie, who sees whom, what is dropped.
#pragma once

#include "weft/backend/cuda/rows.h"
#include "weft/base/random.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

/// A tensor [s, b, g, r, d], or [s, b, g, d] for keys and values (r is 1); the last dimension has step 1.
struct Heads {
  Rows one;  // data and type; a row of d elements
  std::int64_t s = 0, b = 0, g = 0, r = 0;

  /// Where a row begins.
  __device__ __forceinline__ std::int64_t at(std::int64_t i, std::int64_t batch, std::int64_t group,
                                             std::int64_t head) const {
    return i * s + batch * b + group * g + head * r;
  }
};
Heads heads_of(const Tensor& t);

/// A place in the matrix of scores, by row of the batch, group and head of it.
struct Pair {
  std::int64_t b, g, r, i, j;
};

struct Attend {
  Heads q, k, v;
  std::int64_t sq, sk, batch, groups, heads;  // heads of a group
  float scale;
  bool causal;
  std::int64_t diagonal, window;
  const std::int32_t *query_segments, *key_segments;  // [b, sq], [b, sk]
  const float* bias;                                  // [n, distances]
  std::int64_t distances, bias0;
  const std::int64_t* samples;  // null: nothing is dropped
  Address address;
  std::uint32_t threshold;
  float factor;
  std::int64_t head0, query0, key0;

  __device__ __forceinline__ std::int64_t head_of(const Pair& p) const { return p.g * heads + p.r; }
  __device__ __forceinline__ bool sees(const Pair& p) const {
    if (p.i >= sq || p.j >= sk) return false;
    if (causal && p.j > p.i + diagonal) return false;
    if (window > 0 && p.j <= p.i + diagonal - window) return false;
    if (!query_segments) return true;
    const std::int32_t segment = query_segments[p.b * sq + p.i];
    return segment >= 0 && segment == key_segments[p.b * sk + p.j];
  }
  __device__ __forceinline__ float bias_at(const Pair& p) const {
    return bias ? bias[head_of(p) * distances + p.i - p.j + bias0] : 0.0F;
  }
  /// The random numbers of a row of the batch, any where nothing is dropped.
  __device__ __forceinline__ Draw drawn(const Pair& p) const {
    Address at = address;
    at.sample = samples ? std::uint64_t(samples[p.b]) : 0;
    return Draw(at);
  }
  /// What a probability is multiplied with: 0 where dropped, 1 / (1 - p) where kept.
  __device__ __forceinline__ float kept(const Draw& draw, const Pair& p) const {
    const std::int64_t element = ((head0 + head_of(p)) << 40) | ((query0 + p.i) << 20) | (key0 + p.j);
    const PhiloxCounter four = draw.block(std::uint64_t(element) >> 2);
    const std::uint32_t low = element % 2 ? four[1] : four[0], high = element % 2 ? four[3] : four[2];
    return (element & 2 ? high : low) < threshold ? 0.0F : factor;
  }
  __device__ __forceinline__ float kept(const Pair& p) const { return samples ? kept(drawn(p), p) : 1; }
  /// Keys that a query may see: all that it sees lie in [first, last).
  __device__ __forceinline__ std::int64_t last_key(std::int64_t i) const {
    const std::int64_t last = causal ? i + diagonal + 1 : sk;
    return last < sk ? last : sk;
  }
  __device__ __forceinline__ std::int64_t first_key(std::int64_t i) const {
    const std::int64_t first = window > 0 ? i + diagonal - window + 1 : 0;
    return first > 0 ? first : 0;
  }
};
Attend attend(const Attended& in, const AttentionArgs& how);

/// The product of a row in memory with one in shared memory, whose elements beyond width are zeros.
__device__ __forceinline__ float dot(const Rows& of, std::int64_t at, const float* with) {
  float sum = 0;
  for (std::int64_t c = 0; c < of.width; c += 8) {
    const Eight e = read(of, at, c);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += e.x[i] * with[c + i];
  }
  return sum;
}

}  // namespace weft::cuda
