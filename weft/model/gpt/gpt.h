// Decoder-only language models of all common shapes.
#pragma once

#include "weft/model/kind.h"

namespace weft {

ModelKind gpt_kind();

ParameterList gpt_parameters(const ModelConfig& config);

Stage build_gpt(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device);

double gpt_training_flops(const ModelConfig& config, std::int64_t sequence);
double gpt_activation_bound(const ModelConfig& config, std::int64_t micro_batch);

}  // namespace weft
