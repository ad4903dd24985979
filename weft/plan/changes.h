// Configurations that need less memory, and how a person asks for them.
#pragma once

#include <functional>
#include <span>
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

/// Of a completed configuration, all that train the same and that a run accepts, in the order in which a
/// person would try them.
std::vector<Changes> changes_of_means(const TrainConfig& config);

/// What makes a run smaller and keeps its model.
struct Means {
  std::string flags;
  std::function<bool(TrainConfig&)> take;  // false where it is taken already
};
/// Those that a person would do without first.
std::vector<Means> means_that_keep_the_model(const TrainConfig& config);
/// All of them that a run accepts, one after the other.
Change with_all(const TrainConfig& from, std::span<const Means> means);

/// Its sizes, each halved again and again, as far as it can be.
std::vector<Changes> changes_of_sizes(const TrainConfig& config);

}  // namespace weft
