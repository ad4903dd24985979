// What stands between an encoder and a decoder, and what a stack of layers knows of distances.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/nn/layer.h"
#include "weft/nn/norm.h"

namespace weft {

/// The end of an encoder: its hidden states, normed, are what the layers of a decoder look at.
class EncoderMemory final : public Layer {
 public:
  explicit EncoderMemory(Norm norm) : norm_(std::move(norm)) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { norm_.each_parameter(visit); }

 private:
  struct Saved {
    Tensor x;
    NormStats stats;
  };
  Norm norm_;
};

/// Biases of relative positions for all layers of a stack: a number for each head and bucket of distances.
/// They flow to the layers spread over all distances, and what comes back is added up by buckets.
class RelativeBiases final : public Layer {
 public:
  /// table [buckets, n/tp]; the bucket of every distance, as AttentionArgs::bias counts them
  RelativeBiases(Parameter table, const std::vector<std::int32_t>& buckets, Device& device);
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { visit(table_); }

 private:
  Parameter table_;
  Tensor buckets_;  // i32 [distances]
};

}  // namespace weft
