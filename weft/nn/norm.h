// Layer norm and RMS norm with their weights.
#pragma once

#include <optional>

#include "weft/nn/linear.h"
#include "weft/tensor/args.h"

namespace weft {

/// Who sees other rows of what a norm is for, where sums must not show it.
struct NormRows {
  SumRules sums = {};
  Communicator* sequence = nullptr;  // tensor-parallel ranks with neighbouring parts of what is held here
  Communicator* heads = nullptr;     // tensor-parallel ranks with other heads
  Communicator* traded = nullptr;    // context-parallel ranks with others of those, of whole sequences
  TokenCut context = TokenCut();
  std::int64_t parts = 1;  // of a key head's queries, which have sums of their own (key_parts.h)
  bool counted = true;     // false: heads that others count
};

/// Of single heads [s, b, g, (r,) d] the gain may be one for all, [d], or every head's own, [g r d]; then
/// they are normed one after the other, and stats have them first.
class Norm {
 public:
  /// With a gain that nobody learns.
  Norm(Tensor gain, const NormArgs& args) : args_(args) { gain_.value = std::move(gain); }
  Norm(Parameter gain, std::optional<Parameter> bias, const NormArgs& args, const NormRows& rows = {})
      : gain_(std::move(gain)), bias_(std::move(bias)), args_(args), rows_(rows) {}
  struct Out {
    Tensor y;
    NormStats stats;
  };
  /// x [.., h] -> y [.., h]
  Out forward(const Tensor& x) const;
  /// y is given: a view with gaps, say
  NormStats forward_into(const Tensor& y, const Tensor& x) const;
  /// sum = residual + dropout(x + bias), of this type, and y = norm(sum), of x's, in one pass; sum lies in
  /// the place of x where that has its type
  SumNormOut forward_sum(const SumNormIn& in, Dtype sum) const;
  /// y again, from what backward kept
  Tensor again(const Tensor& x) const { return forward(x).y; }
  /// dx = residual + J^T dy, of x's type: over dy, else over residual, else in memory of its own. [s, b, h],
  /// or [s, b, g, .., d] for norms of heads
  Tensor backward(const Tensor& dy, const Tensor& residual, const Tensor& x, const NormStats& stats) const {
    return backward_and_rounded(dy, residual, {x, stats}, false).dx;
  }
  /// What forward read and gave beside y.
  struct Read {
    Tensor x;
    NormStats stats;
  };
  struct Slopes {
    Tensor dx, rounded;
  };
  /// The same, and where dx is not of dy's type, on wish once more in that one, over dy.
  Slopes backward_and_rounded(const Tensor& dy, const Tensor& residual, const Read& read, bool wish) const;
  /// The same, written to dx, which may be dy or residual, and rounded, which may be dy, or empty.
  void backward_into(const Slopes& to, const Tensor& dy, const Tensor& residual, const Read& read) const;
  void each_parameter(const VisitParameter& visit);

 private:
  NormStats make_stats(const Tensor& x) const;
  struct PieceRows;
  /// A gain, and where gradients of it and of a bias are added.
  struct Learned {
    Tensor gain, dgain, dbias;
  };
  bool learns() const { return !gain_.name.empty(); }
  Learned learned() const { return {gain_.value, gain_.grad.sum(), bias_ ? bias_->grad.sum() : Tensor()}; }
  /// Heads of x that have gains of their own; 1: all rows have the same.
  std::int64_t heads_apart(const Tensor& x) const;
  NormStats forward_apart(const Tensor& y, const Tensor& x) const;
  void backward_of(const Learned& learned, const PieceRows& rows) const;
  void backward_apart(const PieceRows& rows) const;
  void backward_in_pieces(const Learned& learned, const PieceRows& rows) const;
  void add_pieces(const Learned& learned, const Tensor& pieces) const;
  NormWeights weights() const { return {gain_.value, bias_ ? bias_->value : Tensor()}; }
  Parameter gain_;
  std::optional<Parameter> bias_;
  NormArgs args_;
  NormRows rows_;
};

}  // namespace weft
