// What a model is made of and what a step of it costs, from its configuration alone.
#pragma once

#include <cstdint>

#include "weft/model/config.h"

namespace weft {

/// Words count once where the output layer is tied to the embedding; rows of padding count nowhere.
struct ParameterCount {
  std::int64_t embedding = 0;  // words, positions, and an output layer of its own
  std::int64_t blocks = 0;     // with the final norm
  std::int64_t idle = 0;       // of these, in experts that a token does not go through
  std::int64_t total() const { return embedding + blocks; }
  std::int64_t active() const { return total() - idle; }
};
ParameterCount count_parameters(const ModelConfig& config);

/// Floating-point operations of training on one sequence, forward and backward, two a multiplication, only
/// the causal half of attention. Megatron's formula, with the true vocabulary in place of the padded one.
double training_flops(const ModelConfig& config, std::int64_t sequence);

/// Megatron's estimate of activation memory for one microbatch on one rank without tensor parallelism, in
/// bytes of the type that activations are stored in; what we keep must not be more.
double activation_bound(const ModelConfig& config, std::int64_t micro_batch);

}  // namespace weft
