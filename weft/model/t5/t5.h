// An encoder that reads a text with spans cut out, and a decoder that says what they were.
#pragma once

#include "weft/model/kind.h"

namespace weft {

ModelKind t5_kind();

ParameterList t5_parameters(const ModelConfig& config);

Stage build_t5(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device);

double t5_training_flops(const ModelConfig& config, std::int64_t sequence);
double t5_activation_bound(const ModelConfig& config, std::int64_t micro_batch);

}  // namespace weft
