// The logits of a text under a model that lies on this rank and those it is cut over.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/model/config.h"
#include "weft/model/partition.h"
#include "weft/nn/layer.h"
#include "weft/nn/linear.h"

namespace weft {

/// A model on this rank. Every tensor-parallel rank takes part.
struct ModelHere {
  const Stage& stage;
  const ModelConfig& config;
  TensorParallel tp;
  Device& device;
};

/// What may follow each of the last `count` tokens: [count, vocabulary], the same on every rank.
std::vector<float> logits_of(const ModelHere& model, std::span<const std::int32_t> tokens, std::int64_t count,
                             Pass& pass);

/// A model that is never whole in memory: `with` makes a part of it, hands it over, and takes it away.
struct ModelInParts {
  const ModelConfig& config;
  TensorParallel tp;
  Device& device;
  using Use = std::function<void(const Stage&)>;
  std::function<void(const StagePart&, const Use&)> with;
};

/// The same numbers, from embedding, layers and head one after the other.
std::vector<float> logits_of(const ModelInParts& model, std::span<const std::int32_t> tokens,
                             std::int64_t count);

}  // namespace weft
