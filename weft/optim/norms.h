// Numbers about all gradients, or all weights, at once: nothing is counted twice, and no order of summation
// shows.
#pragma once

#include <span>

#include "weft/comm/communicator.h"
#include "weft/optim/weights.h"

namespace weft {

/// Which of a block's tensors is looked at.
enum class Look : std::uint8_t { grads, masters };

/// Euclidean norm over every rank of `circles`, whose ranks hold different parts, and over data-parallel
/// ranks where they keep different parts of the states; not finite where an element is not.
double global_norm(const Weights& weights, Look look, std::span<Communicator* const> circles);
/// Elements that are exactly zero, storage that belongs to no parameter left out.
std::int64_t global_zeros(const Weights& weights, std::span<Communicator* const> circles);
/// The factor that brings a norm down to `limit`: 1 where it is below, or where limit is 0.
double clip_factor(double norm, double limit);

}  // namespace weft
