// How many ranks have a part in something. Whoever multiplies degrees asks here, so that another axis is told
// in one place.
#pragma once

#include "weft/train/config.h"

namespace weft {

/// That read other samples of a batch.
inline int sample_ranks(const ParallelConfig& p) { return p.dp; }
/// Over which gradients of layers are added, and what ZeRO cuts is cut: they read other samples, or other
/// parts of them.
inline int data_ranks(const ParallelConfig& p) { return sample_ranks(p) * p.cp; }
/// Of a pipeline stage.
inline int stage_ranks(const ParallelConfig& p) { return p.tp * data_ranks(p); }
inline int all_ranks(const ParallelConfig& p) { return stage_ranks(p) * p.pp; }

}  // namespace weft
