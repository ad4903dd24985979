// The layers of a T5's stage: some of the encoder's, some of the decoder's, or the border between them.
#include <algorithm>

#include "weft/model/builder.h"
#include "weft/model/t5/t5.h"
#include "weft/nn/encoder_memory.h"

namespace weft {
namespace {

constexpr Builder::Looks encoder{.mask = Mask::none, .side = Side::source};
constexpr Builder::Looks decoder{.mask = Mask::causal, .side = Side::text, .memory = true};

/// The embedding of a stack, and what its layers know of distances.
void begin(Stage& stage, Builder& builder, const std::string& distances, const Builder::Looks& looks) {
  stage.layers.push_back(builder.embedding(looks.side));
  if (builder.list().has(distances)) stage.layers.push_back(builder.relative_biases(distances, looks));
}

}  // namespace

// The decoder begins where its first layer stands: hidden states of the encoder travel there as they are.
Stage build_t5(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device) {
  Builder builder(config, t5_parameters(config), part, circles, device);
  Stage stage;
  const int first = part.first_layer, end = first + part.layers, border = config.layers;
  if (part.embeds) begin(stage, builder, "encoder.distances", encoder);
  builder.add_blocks(stage, first, std::min(end, border), [&](int layer) {
    return builder.block("encoder.layers." + std::to_string(layer), layer, encoder);
  });
  const bool decodes = holds_layer(part, border);
  if (decodes) stage.layers.push_back(std::make_unique<EncoderMemory>(builder.norm("encoder.final_norm")));
  stage.encodes = stage.layers.size();
  if (decodes) begin(stage, builder, "decoder.distances", decoder);
  builder.add_blocks(stage, std::max(first, border), end, [&](int layer) {
    return builder.block("decoder.layers." + std::to_string(layer - border), layer, decoder);
  });
  if (part.measures) {
    stage.layers.push_back(std::make_unique<NormLayer>(builder.norm("decoder.final_norm"), "final norm"));
    stage.layers.push_back(builder.head());
  }
  return stage;
}

}  // namespace weft
