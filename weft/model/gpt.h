// Decoder-only language models of all common shapes: config -> the layers of one stage.
#pragma once

#include "weft/model/config.h"
#include "weft/model/partition.h"
#include "weft/nn/context_attention.h"
#include "weft/nn/layer.h"

namespace weft {

/// The circles that layers are cut over.
struct Circles {
  Communicator& tp;
  Between between = Between::whole;
  ContextParallel context = {};
};

/// The layers of one stage, without memory for their weights: whoever owns the weights binds it.
Stage build_gpt(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device);

/// How the layers of a model add.
inline SumRules sums_of(const ModelConfig& config) { return {.exact = config.exact}; }

/// Cosines and sines of rotary positions, f32 [positions, channels * percent / 2, 2]; empty without rotary
/// positions.
Tensor rotary_angles(const ModelConfig& config, Device& device);

}  // namespace weft
