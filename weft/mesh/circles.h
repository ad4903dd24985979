// Sets of axes along which ranks speak: every rank makes a circle for each, in this order.
#pragma once

#include <array>
#include <vector>

#include "weft/mesh/samples.h"

namespace weft {

inline constexpr std::array<Axes, 9> dense_circles{Axes{Axis::tp},
                                                   Axes{Axis::cp},
                                                   sample_axes,
                                                   Axes{Axis::pp},
                                                   data_axes(View::dense),
                                                   model_axes(View::dense),
                                                   Axes{Axis::tp, Axis::cp},
                                                   Axes{Axis::tp} | sample_axes,
                                                   stage_axes};
/// Where the layout has a view of experts.
inline constexpr std::array<Axes, 5> expert_circles{Axes{Axis::etp}, Axes{Axis::ep}, data_axes(View::experts),
                                                    Axes{Axis::etp, Axis::ep}, model_axes(View::experts)};

inline std::vector<Axes> circles_of(const ParallelLayout& layout) {
  std::vector<Axes> out(dense_circles.begin(), dense_circles.end());
  if (layout.has(View::experts)) out.insert(out.end(), expert_circles.begin(), expert_circles.end());
  return out;
}

}  // namespace weft
