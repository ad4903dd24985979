// Which ranks read which samples of a batch. Whoever means them says so, and asks for no axis by name.
#pragma once

#include "weft/mesh/layout.h"

namespace weft {

/// Along these, ranks read other samples.
inline constexpr Axes sample_axes{Axis::dp};
/// Along these lie all ranks of a pipeline stage, who see all samples of a batch together.
inline constexpr Axes stage_axes = axes_of(View::dense) - Axis::pp;

inline int sample_ranks(const ParallelLayout& layout) {
  int ranks = 1;
  for (int axis = 0; axis < axes; ++axis)
    if (sample_axes.holds(Axis(axis))) ranks *= layout.degree(Axis(axis));
  return ranks;
}

}  // namespace weft
