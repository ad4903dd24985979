// Encoders that guess hidden words of a text, and whether its two parts were swapped.
#pragma once

#include "weft/model/kind.h"

namespace weft {

ModelKind bert_kind();

ParameterList bert_parameters(const ModelConfig& config);

Stage build_bert(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device);

double bert_training_flops(const ModelConfig& config, std::int64_t sequence);
double bert_activation_bound(const ModelConfig& config, std::int64_t micro_batch);

}  // namespace weft
