// The gated delta rule in chunks of steps: what the processor's kernels ask of the device for it.
#pragma once

#include <cstdint>

#include "weft/tensor/args.h"

namespace weft::fast {

/// Bytes, from shapes, steps and threads alone: 0 where the reference does it.
std::int64_t delta_workspace(const Tensor& o, const DeltaIn& in, int threads);
std::int64_t delta_backward_workspace(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in,
                                      int threads);

}  // namespace weft::fast
