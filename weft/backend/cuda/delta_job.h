// The host's side of the gated delta rule, for forward and backward.
#pragma once

#include "weft/backend/cuda/delta_chunks.h"
#include "weft/backend/cuda/queue.h"

namespace weft::cuda {

/// All steps, and memories that begin as zeros; nothing is written or kept yet.
DeltaJob delta_job(const DeltaIn& in);
/// job.states = the memories before every job.every-th chunk.
void keep_memories(Queue& queue, const DeltaJob& job);

}  // namespace weft::cuda
