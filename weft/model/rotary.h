// Angles of rotary positions.
#pragma once

#include "weft/model/config.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// Cosines and sines of rotary positions, f32 [places of a sample, channels that turn / 2, 2]; empty without
/// rotary positions.
Tensor rotary_angles(const ModelConfig& config, Device& device);
/// The same of layers that look through a window.
Tensor rotary_angles_of_window(const ModelConfig& config, Device& device);

/// What makes queries grow with their places, as angles that turn nothing; empty where they do not.
Tensor growth_of_queries(const ModelConfig& config, Device& device);
/// Rotary angles of queries that grow.
Tensor growing_angles(const ModelConfig& config, Device& device);

/// How much larger turned queries and keys become, each, where angles are stretched.
double growth_of_scores(const RotaryConfig& rotary);

/// What scores are multiplied by. Where latent attention stretches angles as YaRN does, scores grow too.
double attention_scale(const ModelConfig& config);

}  // namespace weft
