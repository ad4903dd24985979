// What stands at the end of a language model: the last norm, and the loss over a cut vocabulary.
#pragma once

#include <optional>

#include "weft/nn/layer.h"
#include "weft/nn/norm.h"
#include "weft/nn/region.h"
#include "weft/ops/loss.h"
#include "weft/tensor/args.h"

namespace weft {

/// A norm between layers; whoever watches a pass sees what it gives under this name.
class NormLayer final : public Layer {
 public:
  NormLayer(Norm norm, const char* seen_as) : norm_(std::move(norm)), seen_as_(seen_as) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { norm_.each_parameter(visit); }

 private:
  struct Saved {
    Tensor x;
    NormStats stats;
  };
  Norm norm_;
  const char* seen_as_;
};

/// Output layer and cross entropy, a chunk of tokens at a time: the logits of a long sequence never exist
/// whole.
///
/// Training makes all gradients in forward, while a chunk's logits are at hand: the pass knows the factor of
/// the loss already, so dx is kept (h numbers a token) instead of the logits (v numbers a token), and nothing
/// is multiplied twice. Backward only hands dx on.
class LanguageHead final : public Layer {
 public:
  struct Options {
    VocabularyPart part;        // the words of this rank's rows
    std::int64_t chunk = 1024;  // tokens whose logits exist at once
    int loss_number = 0;        // among the family's
    TensorParallel tp;
    /// Where tokens are cut, ranks that share sequences share the rank's words instead, and read whole
    /// sequences.
    TokenCut context = TokenCut();
    float multiplier = 1;  // of the logits
    float cap = 0;         // then they become cap tanh(logit / cap); 0: they stay
  };
  /// An output matrix of its own, or the embedding's, which outlives this.
  LanguageHead(Parameter&& output, const Options& options, std::optional<Parameter> bias = std::nullopt)
      : own_(std::move(output)), bias_(std::move(bias)), options_(options) {}
  LanguageHead(Parameter& tied, const Options& options, std::optional<Parameter> bias = std::nullopt)
      : tied_(&tied), bias_(std::move(bias)), options_(options) {
    ++tied.uses;
  }

  /// What is guessed, and what its loss weighs: of the steps held here [s, b].
  struct Guess {
    Tensor targets, mask;
    int loss = 0;      // number among the family's
    float factor = 1;  // of a counted token's loss in the objective
    Guesses few = {};  // the only ones that count; empty: all may
  };
  /// x [s (/tp), b, h]; the pass gets the losses [s * b], or of those that are few, theirs
  void measure(Pass& pass, const Tensor& x, const Guess& guess) const;
  /// The gradient of the x that was measured last.
  Tensor hand_on(Pass& pass) const;

  /// x [s (/tp), b, h] -> nothing; the pass gets the losses [s * b], or the logits that it asks for
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& unused) override;
  void each_parameter(const VisitParameter& visit) override;
  void each_read(const VisitParameter& visit) override {
    visit(tied_ ? *tied_ : *own_);
    if (bias_) visit(*bias_);
  }
  void each_read_back(const VisitParameter&) override {}
  Parameter& words() { return tied_ ? *tied_ : *own_; }
  /// A pass measures by it so many times more.
  void count_uses(int more) {
    words().uses += more;
    if (bias_) bias_->uses += more;
  }

 private:
  struct Saved {
    Tensor dx;  // of some rows or of all; f32 where it is a term of an exact sum
    Dtype dtype;
    Shape full;
    Tensor rows;  // i32; empty: all
  };
  struct Chunk;
  /// What is guessed of whole sequences, row by row.
  struct Rows {
    Tensor x, targets, mask;
    Tensor from;  // where the rows are some of all
  };
  Rows rows_of(const Tensor& full, const Guess& guess) const;
  static Tensor spread(const Saved& saved);
  void answer(Pass& pass, const Tensor& x) const;
  /// What is kept for the way back where they have a cap: logits as they were, over it.
  struct Logits {
    Tensor y, over_cap;
  };
  Logits logits(const Tensor& x, const Tensor& words, const Tensor& bias) const;
  void logits_backward(const Tensor& dy, const Tensor& over_cap) const;
  void measure(const Chunk& chunk, const Pass& pass, float factor) const;
  /// How the rank's words are shared by those that share its sequences.
  TokenCut words_cut() const { return options_.tp.sums.words(options_.context); }
  /// Whether this rank has all logits of a token, and their loss and its gradient are one walk over them.
  bool loses_in_one_walk(const Tensor& logits) const;
  int slabs() const { return options_.tp.slabs() / words_cut().ranks(); }
  VocabularyPart part(const Share& rows) const;
  LossParts parts(const Tensor& logits, const Tensor& targets) const;
  ops::LossSums sums_here(const Tensor& max, const Tensor& logits, const Tensor& targets) const;
  const Parameter& output() const { return tied_ ? *tied_ : *own_; }

  std::optional<Parameter> own_;
  Parameter* tied_ = nullptr;
  std::optional<Parameter> bias_;  // of the words: [v/tp]
  Options options_;
};

}  // namespace weft
