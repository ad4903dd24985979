// What a step of a T5 costs: arithmetic on shapes.
#include "weft/model/gpt/gpt.h"
#include "weft/model/t5/t5.h"

namespace weft {
namespace {

/// One of its stacks as a model of its own, but for what it looks at beside its text.
ModelConfig stack(const ModelConfig& c, int layers, std::int64_t sequence) {
  ModelConfig out = c;
  out.layers = layers;
  out.sequence = sequence;
  return out;
}

}  // namespace

// Beside two decoders': the encoder has no output, but the other half of its attention; every layer of the
// decoder looks at the encoder's tokens.
double t5_training_flops(const ModelConfig& c, std::int64_t sequence) {
  const double s = double(sequence), t = double(c.decoder_sequence);
  const double h = double(c.hidden), q = double(c.heads * c.channels), v = double(c.vocabulary);
  const double encoder =
      gpt_training_flops(stack(c, c.layers, sequence), sequence) - 6 * s * h * v + 6 * s * s * q * c.layers;
  const double decoder =
      gpt_training_flops(stack(c, c.decoder_layers, c.decoder_sequence), c.decoder_sequence);
  const double cross = c.decoder_layers * (6 * t * 2 * h * q + 6 * s * 2 * h * q + 12 * s * t * q);
  return encoder + decoder + cross;
}

double t5_activation_bound(const ModelConfig& c, std::int64_t micro_batch) {
  const double tokens = double(c.sequence + c.decoder_sequence) * double(micro_batch);
  const double cross = c.decoder_layers * tokens * double(c.hidden) * 16;
  return gpt_activation_bound(stack(c, c.layers, c.sequence), micro_batch) +
         gpt_activation_bound(stack(c, c.decoder_layers, c.decoder_sequence), micro_batch) + cross;
}

}  // namespace weft
