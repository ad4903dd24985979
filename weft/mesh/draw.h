// Who sits where, for people: the ranks of a layout by their places, and who speaks to whom.
#pragma once

#include <string>

#include "weft/mesh/layout.h"

namespace weft {

/// A line a rank, stage by stage, with its places in the view of dense layers and in that of experts where
/// there is one; then the circles along every axis that cuts.
std::string draw_places(const ParallelLayout& layout);

}  // namespace weft
