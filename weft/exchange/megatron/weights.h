// A Megatron-LM checkpoint's weights as ours.
#pragma once

#include <memory>

#include "weft/exchange/megatron/checkpoint.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::megatron {

/// Of each parameter: the numbers that are learned, or one of Adam's two averages.
enum class Part : std::uint8_t { weights, first_moments, second_moments };

class Weights final : public TheirWeights {
 public:
  /// Fails with Kind::data, naming the tensor, unless every tensor of the checkpoint belongs to the model and
  /// the model has all of its. `model` is model_of() its arguments. Moments go by their names here, as
  /// checkpoints of weft have them.
  Weights(std::shared_ptr<const Checkpoint> checkpoint, const ModelConfig& model, Part part = Part::weights);

 private:
  Dtype dtype_of_part(const Theirs& theirs) const override;
  void read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                std::span<float> to) const override;
  const TheirTensor& tensor(const Theirs& theirs) const;
  std::shared_ptr<const Checkpoint> checkpoint_;
  Part part_;
};

}  // namespace weft::exchange::megatron
