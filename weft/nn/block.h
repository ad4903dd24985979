// A transformer block: sublayers, each behind a norm and beside a residual.
#pragma once

#include <optional>
#include <vector>

#include "weft/nn/layer.h"
#include "weft/nn/layer_drop.h"
#include "weft/nn/sublayer.h"
#include "weft/tensor/args.h"

namespace weft {

/// x + dropout(inner(norm(x))), once for every sublayer, which may have no norm; or norm(x) +
/// dropout(inner(norm(x))), which with the norms that follow is a block whose norms stand behind its sums. A
/// step that leaves it out (layer_drop.h) hands on what came in, through its norms where these are what is
/// added to.
class Block final : public Layer {
 public:
  enum class Residual : std::uint8_t { of_input, of_norm };
  struct Options {
    int layer = 0;  // number in the whole model
    int first_dropout =
        0;  // the number of the first sublayer's dropout in the whole model; the next ones follow
    float dropout = 0;
    float multiplier = 1;          // of what its sublayers add
    bool recompute_norms = false;  // keep no norm's output
    Residual residual = Residual::of_input;
    /// What its sublayers read and give where what they add to is f32; none: all is of one type.
    std::optional<Dtype> inner = {};
    LayerDrop drop = {};
    LayerPlace place = {};
    Side side = Side::text;
    TensorParallel tp;
  };
  Block(std::vector<Sublayer> sublayers, const Options& options)
      : sublayers_(std::move(sublayers)), options_(options) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override;
  void each_router(const VisitRouter& visit) override;

 private:
  struct Saved {
    Tensor x, normed;  // normed stays empty where it is recomputed
    NormStats stats;
  };
  DropoutArgs dropout(const Pass& pass, std::size_t sublayer, std::int64_t width) const;
  /// What its sublayers add counts so many times; 0 in a step that leaves it out.
  float weight(const Pass& pass) const;
  bool keeps_normed(const Sublayer& sublayer) const {
    return sublayer.norm.has_value() && !options_.recompute_norms;
  }
  Norm::Out read_by(const Sublayer& sublayer, const Tensor& x) const;
  Tensor given_to(const Flow& d, const DropoutArgs& dropped, float weight) const;
  void through(const Sublayer& sublayer, const Norm::Read& read, const Tensor& dnormed, Flow& d) const;
  Flow left_out(Pass& pass, const Flow& in) const;
  Flow left_out_backward(Pass& pass, const Flow& dout);

  std::vector<Sublayer> sublayers_;
  Options options_;
};

/// Hidden states [s (/tp), b, width] of some of a pass's sequences.
struct HiddenRows {
  const TensorParallel& tp;
  Side side = Side::text;
  std::int64_t width = 0;
};
/// Where the elements of a rank's hidden states stand in the whole, for their dropout.
DropoutArgs hidden_dropout(const Pass& pass, const HiddenRows& rows, const Address& at);

}  // namespace weft
