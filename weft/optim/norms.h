// Numbers about all gradients, or all weights, at once: nothing is counted twice, and no order of summation
// shows.
#pragma once

#include <span>

#include "weft/optim/weights.h"

namespace weft {

/// Which of a block's tensors is looked at.
/// own_grads: of ranks that have not added them, the root of the mean of squares over data-parallel ranks,
/// each rank's gradients times so many ranks.
enum class Look : std::uint8_t { grads, own_grads, masters };

/// A view's sum of squares, or of zeros, apart from the other's: their ranks add them in other circles.
inline constexpr int norm_parts = 2;

/// Squares of a norm as sums over all ranks that stay on the device: parts f64 [norm_parts, exact_digits], of
/// zeros before.
void sum_squares_into(const Tensor& parts, const Weights& weights, Look look);
/// The norm, when the host has read the parts.
double norm_of(std::span<const double> parts, const Weights& weights, Look look);
/// The same of elements that are exactly zero, storage that belongs to no parameter left out: parts f64
/// [norm_parts].
void count_zeros_into(const Tensor& parts, const Weights& weights);

/// Euclidean norm over all ranks of the model, dense layers' and experts'; not finite where an element is
/// not.
double global_norm(const Weights& weights, Look look);
/// The factor that brings a norm down to `limit`: 1 where it is below, or where limit is 0.
double clip_factor(double norm, double limit);

}  // namespace weft
