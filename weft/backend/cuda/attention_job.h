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

/// Blocks of four random numbers from a query's to the next one's.
constexpr std::uint64_t blocks_of_a_query = std::uint64_t{1} << 18;

/// A place in the matrix of scores, by row of the batch, group and head of it. In 32 bits, as all that counts
/// rows of attention: a division in 64 is a hundred instructions, and threads have no registers to waste.
struct Pair {
  int b, g, r, i, j;
};

/// Near zero x (1 - x^2 / 3 + ...), where 1 - 2 / (1 + e^2x) would leave few digits.
__device__ __forceinline__ float tanh_of(float x) {
  const float square = x * x;
  const float near = x + x * square * (-1.0F / 3 + square * (2.0F / 15 + square * (-17.0F / 315)));
  const float far = 1 - gpu::divide(2, 1 + gpu::power_of_two((x > 40 ? 40 : x) * (2 * log2_e)));
  return square < 0.04F ? near : far;
}

struct Attend {
  Heads q, k, v;
  int sq, sk, batch, groups, heads;  // heads of a group
  float scale, unit;                 // unit: scale where scores are in powers of two
  float cap;                         // of scores, in powers of two; 0: none
  bool causal;
  int diagonal, window;
  const std::int32_t *query_segments, *key_segments;  // [b, sq], [b, sk]
  int query_line, key_line;                           // to the segments of the next row of the batch
  const float* bias;                                  // [n, distances]
  std::int64_t distances, bias0;
  const std::int64_t* samples;  // null: nothing is dropped
  Address address;
  std::uint32_t threshold;
  float factor;
  std::int64_t head0, query0, key0;

  __device__ __forceinline__ int head_of(const Pair& p) const { return p.g * heads + p.r; }
  /// A query's number among all of [b, n, sq].
  __device__ __forceinline__ std::int64_t query_of(const Pair& p) const {
    return std::int64_t(p.b * groups * heads + head_of(p)) * sq + p.i;
  }
  __device__ __forceinline__ bool sees(const Pair& p) const {
    if (p.i >= sq || p.j >= sk) return false;
    if (causal && p.j > p.i + diagonal) return false;
    if (window > 0 && p.j <= p.i + diagonal - window) return false;
    if (!query_segments) return true;
    const std::int32_t segment = query_segments[p.b * query_line + p.i];
    return segment >= 0 && segment == key_segments[p.b * key_line + p.j];
  }
  /// A scaled score with its bias, or under its cap.
  __device__ __forceinline__ float finished(const Pair& p, float score) const {
    return cap > 0 ? capped(score * log2_e) / log2_e : score + bias_at(p);
  }
  __device__ __forceinline__ float bias_at(const Pair& p) const {
    return bias ? bias[head_of(p) * distances + p.i - p.j + bias0] : 0.0F;
  }
  /// A score under its cap, and the derivative of such a one by what it was; both in powers of two. Nobody
  /// sees one that is infinite.
  __device__ __forceinline__ float capped(float score) const {
    return cap * tanh_of(gpu::divide(score, cap));
  }
  __device__ __forceinline__ float slope_under_cap(float score) const {
    const float part = gpu::divide(score, cap);
    return fmaxf(1 - part * part, 0);
  }
  /// The random numbers of a row of the batch, any where nothing is dropped.
  __device__ __forceinline__ Draw drawn(const Pair& p) const {
    Address at = address;
    at.sample = samples ? std::uint64_t(samples[p.b]) : 0;
    return Draw(at);
  }
  /// Which four random numbers a pair and the keys beside it have, that begin at a multiple of four.
  __device__ __forceinline__ std::uint64_t block_of(const Pair& p) const {
    const std::int64_t element = ((head0 + head_of(p)) << 40) | ((query0 + p.i) << 20) | (key0 + p.j);
    return std::uint64_t(element) >> 2;
  }
  /// A bit for each of four that is dropped.
  __device__ __forceinline__ std::uint32_t dropped_of_four(const Draw& draw, std::uint64_t block) const {
    const PhiloxCounter four = draw.block(block);
    std::uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) bits |= std::uint32_t(four[std::size_t(i)] < threshold) << i;
    return bits;
  }
  /// What a probability is multiplied with: 0 where dropped, 1 / (1 - p) where kept.
  __device__ __forceinline__ float kept(const Draw& draw, const Pair& p) const {
    return dropped_of_four(draw, block_of(p)) >> ((key0 + p.j) & 3) & 1 ? 0.0F : factor;
  }
  __device__ __forceinline__ float kept(const Pair& p) const { return samples ? kept(drawn(p), p) : 1; }
  /// Keys that a query may see: all that it sees lie in [first, last).
  __device__ __forceinline__ int last_key(int i) const {
    const int last = causal ? i + diagonal + 1 : sk;
    return last < sk ? last : sk;
  }
  __device__ __forceinline__ int first_key(int i) const {
    const int first = window > 0 ? i + diagonal - window + 1 : 0;
    return first > 0 ? first : 0;
  }
};
Attend attend(const Attended& in, const AttentionArgs& how);

/// Where a head lies, and a query, from its number among all.
__device__ __forceinline__ Pair head_place(const Attend& a, int head) {
  const int group = head / a.heads, batch = group / a.groups;
  return {batch, group - batch * a.groups, head - group * a.heads, 0, 0};
}
__device__ __forceinline__ Pair query_place(const Attend& a, std::int64_t query) {
  const int head = int(std::uint32_t(query) / std::uint32_t(a.sq));  // no GPU has memory for 2^32
  Pair place = head_place(a, head);
  place.i = int(std::uint32_t(query) - std::uint32_t(head) * std::uint32_t(a.sq));
  return place;
}

/// A query's greatest score, as it is told. One that is no number leaves no sum that is one, and no trace in
/// the maximum.
__device__ __forceinline__ float greatest_of(float max, float sum) { return sum == sum ? max : INFINITY; }

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
