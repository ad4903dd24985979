// Attention sinks: a score for each head that no key has, and that takes its share of every softmax.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// sinks f32 [n]: out becomes attention with them.
void add_sinks(const AttentionOut& out, const Tensor& sinks);
/// dsinks f32 [n] is added to, from out with the sinks and its gradient.
void add_sink_grads(const Tensor& dsinks, const Tensor& dout, const AttentionOut& out, const Tensor& sinks);

}  // namespace weft::ops
