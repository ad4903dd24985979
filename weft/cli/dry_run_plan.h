// What a run will need, told to people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "weft/cli/environment.h"
#include "weft/plan/fit.h"

namespace weft::cli {

/// A device that counts for those that the run will open.
OpenCounter counter_of(const TrainConfig& config, const Launched& launched);
/// Which ranks share the memory of this machine.
RanksHere ranks_here(const ParallelConfig& parallel, const Launched& launched);
/// What this machine has left, of memory and for states in files.
FreeMemory free_here(const TrainConfig& config);

/// Parameters, tokens and operations of a step, and the memory of every kind of rank; where numbers are too
/// large to be counted, what is known at least. Settings are named by their fields (dialect/spelling.h).
std::string plan_text(const TrainConfig& config, const Launched& launched);
nlohmann::ordered_json plan_json(const TrainConfig& config, const Launched& launched);

}  // namespace weft::cli
