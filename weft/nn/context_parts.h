// One rank's half chunks against another's: the pieces that ring and gather are made of.
#pragma once

#include "weft/nn/context_attention.h"

namespace weft {

/// Which places of the sequence a rank's two chunks stand at.
struct Zigzag {
  int ranks = 1;
  std::int64_t chunk = 0;
  std::int64_t start(int rank, int half) const {
    return chunk * (half == 0 ? rank : 2 * std::int64_t{ranks} - 1 - rank);
  }
};

/// Of keys and values that travel together, [s, b, g, d + d'].
inline Tensor keys_of(const Tensor& keys_values, std::int64_t d) { return keys_values.slice(3, 0, d); }
inline Tensor values_of(const Tensor& keys_values, std::int64_t d) {
  return keys_values.slice(3, d, keys_values.dim(3) - d);
}

/// What the queries held here know in backward.
struct ContextBackward {
  Tensor dq;  // f32, added to
  Tensor dout;
  AttentionOut out;
  Tensor dbias;  // added to; empty without a bias
};

/// Queries of one rank against the keys of all, a rank's keys at a time.
class ContextParts {
 public:
  /// key_segments [c, b, s], every rank's; empty without segments
  ContextParts(const Communicator& circle, Attended in, AttentionArgs how, Tensor key_segments);
  /// Adds what rank `owner`'s keys and values [s, b, g, d + d'] say.
  void add(const AttentionOut& sum, const Tensor& keys_values, int owner);
  /// dkv f32 [s, b, g, d + d'] is added to.
  void add_backward(const ContextBackward& mine, const Tensor& dkv, const Tensor& keys_values,
                    int owner) const;
  /// Room for a sum: f32, so that parts are rounded once.
  AttentionOut empty_sum() const;

 private:
  struct Pair {
    int query_half, key_half, owner;
  };
  bool sees(const Pair& pair) const;
  AttentionArgs args(const Pair& pair) const;
  Attended operands(const Pair& pair, const Tensor& keys_values) const;
  static Tensor half(const Tensor& x, int dim, int which) {
    return x.slice(dim, which * x.dim(dim) / 2, x.dim(dim) / 2);
  }
  template <class Work>
  void each_pair(int owner, const Work& work) const {
    for (const int q : {0, 1})
      for (const int k : {0, 1})
        if (const Pair pair{q, k, owner}; sees(pair)) work(pair);
  }

  int rank_;
  Zigzag queries_, keys_;  // of one sequence or of two
  Attended in_;
  AttentionArgs how_;
  Tensor key_segments_;
  std::array<bool, 2> begun_{};  // by half of the queries: the sum holds something
};

}  // namespace weft
