// A transformer block: attention and MLP, each behind a norm and beside a residual.
#pragma once

#include "weft/nn/attention.h"
#include "weft/nn/layer.h"
#include "weft/nn/mlp.h"
#include "weft/nn/norm.h"
#include "weft/tensor/args.h"

namespace weft {

/// x + dropout(attention(norm1(x))), then the same with the MLP and norm2.
class Block final : public Layer {
 public:
  struct Options {
    int layer = 0;  // number in the whole model
    float dropout = 0;
    bool recompute_norms = false;  // keep no norm's output
    TensorParallel tp;
  };
  Block(Norm before_attention, SelfAttention attention, Norm before_mlp, Mlp mlp, const Options& options)
      : norm1_(std::move(before_attention)),
        attention_(std::move(attention)),
        norm2_(std::move(before_mlp)),
        mlp_(std::move(mlp)),
        options_(options) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor x, normed1, sum, normed2;  // normed1 and normed2 stay empty where they are recomputed
    NormStats stats1, stats2;
  };
  enum class Half : std::uint8_t { attention, mlp };
  DropoutArgs dropout(const Pass& pass, Half half, std::int64_t width) const;

  Norm norm1_;
  SelfAttention attention_;
  Norm norm2_;
  Mlp mlp_;
  Options options_;
};

/// Where the elements of a rank's hidden states [s (/tp), b, h] stand in the whole, for their dropout.
DropoutArgs hidden_dropout(const Pass& pass, const TensorParallel& tp, const Address& at, std::int64_t width);

}  // namespace weft
