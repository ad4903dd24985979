// The layers of a GPT's stage, one behind the other.
#include "weft/model/builder.h"
#include "weft/model/gpt/gpt.h"

namespace weft {

Stage build_gpt(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device) {
  Builder builder(config, gpt_parameters(config), part, circles, device);
  Stage stage;
  if (part.embeds) stage.layers.push_back(builder.embedding());
  if (part.embeds && config.embedding_norm)
    stage.layers.push_back(std::make_unique<NormLayer>(builder.norm("embedding.norm"), "embedding norm"));
  builder.add_blocks(stage,
                     [&](int layer) { return builder.block("layers." + std::to_string(layer), layer, {}); });
  if (part.measures) {
    stage.layers.push_back(std::make_unique<NormLayer>(builder.norm("final_norm"), "final norm"));
    builder.add_further_tokens_and_head(stage, [&](int depth) {
      return builder.block("ahead.layers." + std::to_string(depth), config.layers + depth, {});
    });
  }
  return stage;
}

}  // namespace weft
