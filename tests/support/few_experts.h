// Experts that tests of several rooms put into a small model.
#pragma once

#include "weft/model/config.h"

namespace weft::testing {

/// Four in every layer that has any.
inline ModelConfig with_four_experts(ModelConfig config, const RouterConfig& router = {}) {
  config.experts.count = 4;
  config.experts.ffn_hidden = 8;
  config.experts.router = router;
  return config;
}

/// A router that keeps something from step to step (what is added to scores) and has a loss of its own.
inline RouterConfig learning_router() {
  return {.score = RouterScore::sigmoid,
          .expert_bias = true,
          .bias_rate = 0.1,
          .balancing = {Balancing::seq_aux_loss},
          .coefficients = {0.01}};
}

}  // namespace weft::testing
