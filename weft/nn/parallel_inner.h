// Attention and an MLP, or experts, that read the same stream and are added to it at once.
#pragma once

#include <array>

#include "weft/nn/sublayer.h"

namespace weft {

/// The sum of what two branches give, which bring norms of their own or read what the block's gave. Where
/// products leave it to this, the two cross the tensor-parallel circle together: half the messages.
class ParallelInner final : public Inner {
 public:
  struct Branch {
    std::optional<Norm> norm;
    std::unique_ptr<Inner> inner;
  };
  struct Options {
    TensorParallel tp;
    bool enters_once = false;  // what both read, whose products then expect whole sequences
    bool leaves_once = false;  // what both give, whose products then leave terms of a sum
    bool recompute_norms = false;
  };
  ParallelInner(std::array<Branch, 2> branches, const Options& options)
      : branches_(std::move(branches)), options_(options) {}
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override;
  bool adds_residual_grad() const override { return own_norms(); }
  void each_parameter(const VisitParameter& visit) override;
  void each_router(const VisitRouter& visit) override;

 private:
  struct Saved {
    std::array<Tensor, 2> normed;  // empty where they are recomputed
    std::array<NormStats, 2> stats;
  };
  bool own_norms() const { return branches_.front().norm.has_value(); }
  Tensor through_norms(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside);
  Tensor through_one_norm(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside);

  std::array<Branch, 2> branches_;
  Options options_;
};

}  // namespace weft
