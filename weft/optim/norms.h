// Numbers about all gradients, or all weights, at once: nothing is counted twice, and no order of summation
// shows.
#pragma once

#include "weft/optim/weights.h"

namespace weft {

/// Which of a block's tensors is looked at.
/// own_grads: of ranks that have not added them, the root of the mean of squares over data-parallel ranks,
/// each rank's gradients times so many ranks.
enum class Look : std::uint8_t { grads, own_grads, masters };

/// Euclidean norm over all ranks of the model, dense layers' and experts'; not finite where an element is
/// not.
double global_norm(const Weights& weights, Look look);
/// Elements that are exactly zero, storage that belongs to no parameter left out.
std::int64_t global_zeros(const Weights& weights);
/// The factor that brings a norm down to `limit`: 1 where it is below, or where limit is 0.
double clip_factor(double norm, double limit);

}  // namespace weft
