// A layer that remembers as a state space does (tensor/args.h), Mamba-2's: it costs a token the same however
// long the text before it is.
//
//   p = x W,             of every group of heads: reads | writes | values | gates | times
//   q | k | v = filter(p)
//   y = norm(space(q, k, v, times) silu(gates)) W_o,    the norm of a group's heads together
//
// Groups are cut over tensor-parallel ranks. Ranks that share a sequence trade them, so that each walks over
// whole sequences of some.
#pragma once

#include "weft/nn/memory_heads.h"
#include "weft/nn/memory_shape.h"
#include "weft/nn/sublayer.h"
#include "weft/tensor/args.h"

namespace weft {

class StateMemory final : public Inner {
 public:
  /// What is held of a group, or of a head, lies group by group.
  struct Parts {
    ColumnLinear in;
    Parameter filter, filter_bias;  // [keys, filtered, taps], [keys filtered]
    Parameter speed, shift, skip;   // [keys per_key]
    Parameter gain;                 // [keys values]
    NormArgs norm;
    RowLinear project;
    MemoryHeads heads;
  };
  /// layer: its number in the whole model
  StateMemory(Parts parts, const MemoryShape& shape, int layer)
      : parts_(std::move(parts)), shape_(shape), layer_(layer) {}
  /// x [s (/tp), b, h] -> y [s (/tp), b, h]; the projection's bias is left to the reader
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return parts_.project.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override;

 private:
  struct Saved {
    Tensor made;      // [s, b, keys, width]: of the product
    Tensor filtered;  // [s, b, keys, filtered]
    Tensor o;         // [s, b, keys, per_key, value]
    Tensor rstd;      // [keys, s, b], of what the norm read
    Tensor said;      // what the projection read, where it came from several ranks
  };
  /// Windows on what the product made, or on its gradient.
  struct Made {
    Tensor to_filter, gates, times;
  };
  Made windows(const Tensor& made) const;
  /// Windows on what was filtered, or on its gradient.
  struct Filtered {
    Tensor q, k, v;
  };
  Filtered windows_of_filtered(const Tensor& filtered) const;
  DeltaIn space(const Saved& saved) const;
  Filters filters() const;
  Tensor gates(const Saved& saved) const;
  /// x [s, b, keys, values] -> normed, and what it was divided by
  Tensor normed(const Tensor& x, const Tensor& rstd) const;
  /// dy, which becomes dx
  void norm_backward(const Tensor& dy, const Tensor& x, const Tensor& rstd);
  /// dfiltered [s, b, keys, filtered]
  Tensor space_backward(const Saved& saved, const Tensor& d_o, const Tensor& dtimes);
  void filter_backward(const Tensor& dmade, const Tensor& dfiltered, const Tensor& made);

  Parts parts_;
  MemoryShape shape_;
  int layer_;
};

}  // namespace weft
