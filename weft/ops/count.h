// How much work an op is: floating-point operations and bytes that must cross memory, from shapes alone, so
// that a device which only counts counts alike. Every formula is in this file.
#pragma once

#include <algorithm>

#include "weft/tensor/args.h"
#include "weft/tensor/device.h"

namespace weft::ops::count {

/// Bytes of the tensors that are there, each crossed once. Name one twice where it is read and written.
template <class... Tensors>
std::int64_t traffic(const Tensors&... tensors) {
  return ((tensors ? tensors.bytes() : 0) + ... + 0);
}

/// Operations for each element of pass(): a fixed convention, so that figures can be compared.
inline constexpr std::int64_t copy = 0, add = 1, multiply_add = 2, dropout = 2, random = 10, activation = 10,
                              activation_backward = 14, norm = 8, norm_backward = 16, softmax = 6,
                              softmax_backward = 4, rope = 3, loss = 4, adam = 16, sgd = 6, lion = 8,
                              root = 2;

/// One pass over elements.
inline void pass(const Tensor& elements, Work work, std::int64_t each, std::int64_t bytes) {
  elements.device().work().add(work, each * elements.elements(), bytes);
}

/// out[.., m, n] from k: a multiplication and an addition for each of m n k.
inline void product(const Tensor& out, std::int64_t k, std::int64_t bytes) {
  out.device().work().add(Work::product, 2 * out.elements() * k, bytes);
}

/// Pairs of a query and a key that may see each other, for sq queries and sk keys: mask and window, not
/// segments, which are data.
inline std::int64_t pairs(std::int64_t sq, std::int64_t sk, const AttentionArgs& how) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < sq; ++i) {
    const std::int64_t last = how.mask == Mask::causal ? std::min(sk, i + how.diagonal + 1) : sk;
    const std::int64_t first =
        how.window > 0 ? std::max<std::int64_t>(0, i + how.diagonal - how.window + 1) : 0;
    sum += std::max<std::int64_t>(0, last - first);
  }
  return sum;
}

/// Of each pair and head: forward multiplies over the channels of a key and of a value, backward three times
/// and twice (it computes the scores again).
struct AttentionProducts {
  std::int64_t of_keys = 1, of_values = 1;
};
inline constexpr AttentionProducts attention_products{1, 1}, attention_backward_products{3, 2};
inline void attention(const Attended& in, const AttentionArgs& how, const AttentionProducts& products,
                      std::int64_t bytes) {
  const std::int64_t heads = in.q.dim(1) * in.q.dim(2) * in.q.dim(3);
  const std::int64_t channels = products.of_keys * in.q.dim(4) + products.of_values * in.v.dim(3);
  const std::int64_t seen = pairs(in.q.dim(0), in.k.dim(0), how);
  in.q.device().work().add(Work::attention, 2 * seen * heads * channels, bytes);
}

/// Of each element: a multiplication and an addition a tap, and the activation.
inline std::int64_t convolve(std::int64_t taps) { return 2 * taps + activation; }

/// Of a head's memory at each step: read twice and changed; backward reads it again twice, goes back through
/// all three twice.
inline constexpr std::int64_t delta_products = 3, delta_backward_products = 8;
/// The same where nothing is corrected, so that one reading less is.
inline constexpr std::int64_t state_products = 2, state_backward_products = 5;
inline void delta(const DeltaIn& in, std::int64_t products, std::int64_t bytes) {
  in.v.device().work().add(Work::attention, 2 * products * in.v.elements() * in.q.dim(3), bytes);
}

}  // namespace weft::ops::count
