// Attention of a decoder to what an encoder made of its text: queries from one stream, keys and values from
// another.
#pragma once

#include "weft/nn/attention.h"

namespace weft {

/// Keys have a query head each, and no positions.
class CrossAttention final : public Inner {
 public:
  CrossAttention(ColumnLinear query, ColumnLinear key_value, RowLinear project, const AttentionShape& shape)
      : query_(std::move(query)),
        key_value_(std::move(key_value)),
        project_(std::move(project)),
        shape_(shape) {}
  /// x [s (/tp), b, h], beside.memory [s of the encoder (/tp), b, h] -> y [s (/tp), b, h]
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return project_.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor q;   // [s, b, g d]
    Tensor kv;  // [s of the encoder, b, g 2 d]
    Tensor memory;
    ContextKept kept;
  };
  Attended views(const Tensor& q, const Tensor& kv) const;
  /// Of the memory, or where a pass before this made them of the same, those.
  Tensor keys_values(const Pass& pass, const Tensor& memory) const;
  AttentionArgs args(const Pass& pass) const;
  std::int64_t width() const { return shape_.groups * shape_.channels; }

  ColumnLinear query_, key_value_;
  RowLinear project_;
  AttentionShape shape_;
};

}  // namespace weft
