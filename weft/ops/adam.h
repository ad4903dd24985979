// Updates of flat weights in one pass: master, moments and the copy that layers read.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// state.master, m, v f32 [n] and contiguous; copy (any float type, or empty) becomes the new master; grad
/// [n].
///   g = grad * grad_scale (+ decay * master, where not decoupled)
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
///   master = master (1 - rate decay, where decoupled) - rate (m / correction1) / (sqrt(v / correction2) +
///   epsilon)
void adam_into(const AdamState& state, const Tensor& grad, const AdamArgs& how);

///   g = grad * grad_scale + decay * master,  momentum = how.momentum * momentum + g,  master -= rate *
///   momentum
/// Without a momentum factor state.momentum may be empty.
void sgd_into(const SgdState& state, const Tensor& grad, const SgdArgs& how);

}  // namespace weft::ops
