// The position-wise half of a block: up, activation, down.
#pragma once

#include "weft/nn/sublayer.h"
#include "weft/tensor/kinds.h"

namespace weft {

class Mlp final : public Inner {
 public:
  struct Options {
    Gate gate = {.f = Activation::gelu};
    bool gated = false;      // up makes [gate | up]; else the gate's function is all that it says
    bool recompute = false;  // keep nothing but x, which the block keeps anyway
  };
  Mlp(ColumnLinear up, RowLinear down, const Options& options)
      : up_(std::move(up)), down_(std::move(down)), options_(options) {}
  /// x [s, b, h] -> y [s, b, h]; down's bias is left to the reader
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return down_.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor before, after;  // the activation
  };
  Saved widen(const Tensor& x) const;
  /// Whether products and activation are one walk over memory each way: then `before` has the bias in it.
  bool in_one_walk(const Tensor& x) const;
  ColumnLinear up_;
  RowLinear down_;
  Options options_;
};

}  // namespace weft
