// How the settings of a run may differ from its checkpoint's: which must agree, and which are only told.
#pragma once

#include <string>
#include <vector>

#include "weft/train/save_facts.h"

namespace weft {

/// Fails where the checkpoint's model computes something else, or its data position would mean other samples.
void must_continue(const RunFacts& facts, const TrainConfig& config, const std::string& who);
/// Fails where schedules differ and nobody said which holds.
void must_agree(const RunSchedules& saved, const RunSchedules& given, const std::string& who);
/// A sentence that names all settings that may differ and do; empty where none does.
std::string other_settings(const RunFacts& facts, const TrainConfig& config);

/// Names the settings without which a step is another one; empty where all agree.
std::string settings_of_another_step(const RunFacts& facts, const TrainConfig& config);
/// Whether what a step computes is summed in another order: another layout, micro batch or device.
bool rounds_otherwise(const RunFacts& facts, const TrainConfig& config);

}  // namespace weft
