// What families of one stack of layers have in common: how it is cut, and what travels between its stages.
#pragma once

#include "weft/model/kind.h"

namespace weft {

std::vector<StagePart> cut_stack(const ModelConfig& config, const StageCut& cut);
Carried carried_by_stack(const ModelConfig& config, const StagePart& into, const Batch& batch,
                         const CutOver& cut);
/// Hidden states between layers that read these sequences: [s (/tp), b, h].
Shape hidden_shape(const ModelConfig& config, const Sequences& read, const CutOver& cut);

void check_stack_cut(const ModelConfig& config, const CutOver& cut);
std::vector<ExactWidth> stack_exact_widths(const ModelConfig& config);
std::string stack_exact_notice(const ModelConfig& config, const CutOver& cut);

}  // namespace weft
