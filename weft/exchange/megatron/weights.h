// A Megatron-LM checkpoint's weights as ours.
#pragma once

#include <memory>

#include "weft/exchange/megatron/checkpoint.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::megatron {

class Weights final : public TheirWeights {
 public:
  /// Fails with Kind::data, naming the tensor, unless every tensor of the checkpoint belongs to the model and
  /// the model has all of its. `model` is model_of() its arguments.
  Weights(std::shared_ptr<const Checkpoint> checkpoint, const ModelConfig& model);

 private:
  Dtype dtype_of_part(const Theirs& theirs) const override;
  void read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                std::span<float> to) const override;
  const TheirTensor& tensor(const Theirs& theirs) const;
  std::shared_ptr<const Checkpoint> checkpoint_;
};

}  // namespace weft::exchange::megatron
