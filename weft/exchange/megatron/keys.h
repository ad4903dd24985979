// Megatron's names of tensors, and what weft calls the same ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/config.h"

namespace weft::exchange::megatron {

/// A key whose tensor may hold all layers, or all experts of all layers, along its first dimensions:
/// decoder.layers.mlp.experts.experts.linear_fc1.weight is [layers, experts, rows, columns].
class Key {
 public:
  explicit Key(std::string_view key);
  /// How many dimensions in front count layers and experts.
  int stacked() const { return int(of_layers_) + int(of_experts_); }
  /// The one tensor at such a place: decoder.layers.3.mlp.experts.5.linear_fc1.weight.
  std::string at(std::span<const std::int64_t> place) const;

 private:
  std::string front_, middle_, back_;
  bool of_layers_ = false, of_experts_ = false;
};

/// What that is called where files of ranks name it in other ways:
/// mlp.experts.local_experts.5.linear_fc1.weight, mlp.experts.linear_fc1.weight5.
std::string plain_name(const std::string& theirs);

/// The names that a parameter of a model may have there: Transformer Engine's, and those of the layers that
/// need none.
std::vector<std::string> their_names(const std::string& ours, const ModelConfig& model);

}  // namespace weft::exchange::megatron
