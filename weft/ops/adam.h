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
/// m and v may be bf16, f16 or f8e5m2 too (tensor/args.h says what they hold).
void adam_into(const AdamState& state, const Tensor& grad, const AdamArgs& how);

///   g = grad * grad_scale + decay * master,  momentum = how.momentum * momentum + g,  master -= rate *
///   momentum
/// Without a momentum factor state.momentum may be empty.
void sgd_into(const SgdState& state, const Tensor& grad, const SgdArgs& how);

///   c = beta1 momentum + (1 - beta1) g,  master = master (1 - rate decay) - rate sign(c),
///   momentum = beta2 momentum + (1 - beta2) g
void lion_into(const SgdState& state, const Tensor& grad, const LionArgs& how);

/// The first half of an update whose length is not known yet: moments as adam_into has them, and grad (f32)
/// becomes m / correction1 / (sqrt(v / correction2) + epsilon) (+ decay * master, where decoupled). With
/// betas of 1 moments stay what they are.
void adam_direction_into(const AdamState& state, const Tensor& grad, const AdamArgs& how);
/// master = how.keep * master - how.rate (* how.by) * x; copy, where there is one, becomes the new master.
void descend_into(const Tensor& master, const Tensor& copy, const Tensor& x, const DescentArgs& how);
/// out = sqrt(x) + epsilon; f32 [n]; out may be x.
void root_into(const Tensor& out, const Tensor& x, float epsilon);

/// x f32 [n] as signs, eight a byte, the first one highest, 1 where it is not negative: bits u8 [n / 8]. x
/// keeps what size f32 [1] times those signs leaves out.
void take_signs_into(const Tensor& bits, const Tensor& x, const Tensor& size);
/// out f32 [n] += size f32 [1] / share times the signs that take_signs_into made
void add_signs_into(const Tensor& out, const Tensor& bits, const Tensor& size, float share = 1);

}  // namespace weft::ops
