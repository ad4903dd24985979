// Configurations that need less memory, and how a person asks for them.
#pragma once

#include <string>
#include <vector>

#include "weft/train/config.h"

namespace weft {

struct Change {
  std::string flags;  // "{model.hidden} 4096"
  TrainConfig config;
};
/// Each needs less than the one before it.
using Changes = std::vector<Change>;

/// Of a completed configuration, all that train the same, in the order in which a person would try them.
std::vector<Changes> changes_of_means(const TrainConfig& config);
/// Its sizes, each halved again and again, as far as it can be.
std::vector<Changes> changes_of_sizes(const TrainConfig& config);

}  // namespace weft
