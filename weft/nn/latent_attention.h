// Attention whose keys and values are made of a small latent of each token.
//
//   a = norm(x A_q),        q = a B_q            (or q = x B_q), of every head: plain | turned
//   c | r = x A_kv,         k | v = norm(c) B_kv, of every head: plain key | value
//
// Every head's key is its plain one and r, which turns with the position, as the second part of every query
// does. Latents are whole on every tensor-parallel rank, heads are cut.
#pragma once

#include <optional>

#include "weft/nn/attention.h"
#include "weft/nn/whole_linear.h"

namespace weft {

/// Beside what a rank knows of its heads: each has a key to itself, `channels` wide.
struct LatentShape {
  TensorParallel tp;
  AttentionShape heads;
  std::int64_t turned = 0;  // of a key's channels, the last
  std::int64_t value = 0;   // channels of a value
  std::int64_t leaves = 1;  // of the sum over the heads held here, in exact mode a tree's
  bool recompute = false;   // keep latents only, and make heads of them again
};

class LatentAttention final : public Inner {
 public:
  /// A latent's way in and out; without one (queries only) heads are made of the token itself.
  struct Path {
    std::optional<WholeLinear> down;
    std::optional<Norm> norm;
    ColumnLinear up;
  };
  LatentAttention(Path query, Path key_value, RowLinear project, const LatentShape& shape, Sinks sinks)
      : query_(std::move(query)),
        key_value_(std::move(key_value)),
        project_(std::move(project)),
        shape_(shape),
        sinks_(std::move(sinks)) {}
  /// x [s (/tp), b, h] -> y [s (/tp), b, h]; the projection's bias is left to the reader
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return project_.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override;

 private:
  /// [s (/tp), b, rank]: as the product made it, and as heads are made of it.
  struct Latent {
    Tensor raw, normed;
    NormStats stats;
  };
  struct Latents {
    Latent query, key_value;
    Tensor pressed;  // [s (/tp), b, rank + turned]: the latent of keys and values, and the key that turns
  };
  struct Saved {
    Latents latents;
    ContextKept kept;
  };
  const AttentionShape& heads() const { return shape_.heads; }
  std::int64_t plain() const { return heads().channels - shape_.turned; }
  Latent latent(const Path& path, const Tensor& raw) const;
  Latents press(const Tensor& x) const;
  Attended widen(const Pass& pass, const Latents& latents, const Tensor& x) const;
  Tensor keys(const Pass& pass, const Tensor& plain_keys, const Latents& latents) const;
  Tensor sum_over_heads(const Tensor& dk) const;
  /// Gradients of heads as the products made them, [s, b, n ..], and of the key that they share.
  struct HeadGrads {
    Tensor query, key_value, shared;
  };
  HeadGrads widen_backward(const Pass& pass, const Saved& saved, const Tensor& dout);
  Tensor press_backward(Pass& pass, const Latents& latents, const HeadGrads& d, const Tensor& x);

  Path query_, key_value_;
  RowLinear project_;
  LatentShape shape_;
  Sinks sinks_;
};

}  // namespace weft
