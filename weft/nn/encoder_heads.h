// What stands behind an encoder that guesses hidden words: a transform before the words' logits, and a guess
// at the order of the two parts of a text.
#pragma once

#include "weft/nn/layer.h"
#include "weft/nn/norm.h"
#include "weft/ops/loss.h"

namespace weft {

/// norm(gelu(W x + b)), whole on every tensor-parallel rank, or on a part of the sequence where that is cut.
/// The gelu is the exact one, whatever the blocks have.
class LanguageTransform final : public Layer {
 public:
  LanguageTransform(Product dense, Norm norm, const TensorParallel& tp)
      : dense_(std::move(dense)), norm_(std::move(norm)), tp_(tp) {}
  /// x [s (/tp), b, h] -> y [s (/tp), b, h]
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor x, before, after;  // of the gelu
    NormStats stats;
  };
  Product dense_;
  Norm norm_;
  TensorParallel tp_;
};

/// tanh(W p + b) of the first position p, and two logits of it. Hands the hidden states on as they are: the
/// loss's way back is added to their gradient. Where sequences are cut, who holds the first position computes
/// it, tensor-parallel ranks all the same.
class SentenceOrderHead final : public Layer {
 public:
  struct Options {
    TensorParallel tp;
    bool holds_first = true;  // of the ranks that share a sequence
    int loss_number = 1;      // among the family's
  };
  SentenceOrderHead(Product pooler, Product binary, const Options& options)
      : pooler_(std::move(pooler)), binary_(std::move(binary)), options_(options) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor first, before, pooled, dlogits;  // [b, h] thrice, [b, 2]; empty where the first position is not
  };
  Tensor first_position(const Tensor& x) const;
  Tensor measured(Pass& pass, const Tensor& logits) const;
  Product pooler_, binary_;
  Options options_;
};

}  // namespace weft
