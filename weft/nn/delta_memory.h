// A layer that remembers by the gated delta rule (tensor/args.h) where others attend: it costs a token the
// same however long the text before it is.
//
//   p = x W,            of every key head: query | key | values | gates | rates | decays
//   q | k | v = filter(p),   q and k of length one each
//   y = norm(rule(q, k, v, rates, decays)) silu(gates) W_o
//
// Key heads are cut over tensor-parallel ranks, each with the value heads that it serves. Ranks that share a
// sequence trade them, so that each walks over whole sequences of some.
#pragma once

#include "weft/nn/memory_heads.h"
#include "weft/nn/memory_shape.h"
#include "weft/nn/norm.h"
#include "weft/nn/sublayer.h"
#include "weft/tensor/args.h"

namespace weft {

class DeltaMemory final : public Inner {
 public:
  struct Parts {
    ColumnLinear in;
    Parameter filter;        // [keys, filtered, taps]
    Parameter speed, shift;  // [keys per_key]
    Norm norm;               // of a value head
    RowLinear project;
    Tensor unit;  // f32 [channels]: what makes a row's root mean square its length
    MemoryHeads heads;
  };
  /// layer: its number in the whole model
  DeltaMemory(Parts parts, const MemoryShape& shape, int layer)
      : parts_(std::move(parts)), shape_(shape), layer_(layer) {}
  /// x [s (/tp), b, h] -> y [s (/tp), b, h]; the projection's bias is left to the reader
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return parts_.project.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor made;        // [s, b, keys, width]: of the product
    Tensor filtered;    // [s, b, keys, filtered]
    Tensor units;       // [s, b, keys, 2, channels]: query and key of length one
    NormStats lengths;  // of these
    Tensor o;           // [s, b, keys, per_key, value]
    NormStats stats;
    Tensor said;  // what the projection read, where it came from several ranks
  };
  /// Windows on what the product made, or on its gradient.
  struct Made {
    Tensor to_filter, gates, rates, decays;
  };
  Made windows(const Tensor& made) const;
  Tensor queries_and_keys(const Tensor& filtered) const;
  Tensor values(const Tensor& filtered) const;
  DeltaIn rule(const Saved& saved) const;
  NormArgs lengths() const;
  Tensor open(const Saved& saved) const;
  Tensor rule_backward(const Saved& saved, const Tensor& d_o, const Made& dmade);

  Parts parts_;
  MemoryShape shape_;
  int layer_;
};

}  // namespace weft
