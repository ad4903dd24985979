// The layers of a BERT's stage, one behind the other.
#include "weft/model/bert/bert.h"
#include "weft/model/builder.h"
#include "weft/nn/encoder_heads.h"

namespace weft {
namespace {

/// Every tensor-parallel rank computes the first position's answer, so all have the same gradient.
Product whole_product(const Builder& builder, const std::string& name) {
  return {builder.shared(name + ".weight"), builder.shared(name + ".bias"), BiasAdded::by_product};
}

std::unique_ptr<Layer> sentence_order(const Builder& builder) {
  const Communicator* const context = builder.context_parallel().circle;
  return std::make_unique<SentenceOrderHead>(
      whole_product(builder, "pooler"), whole_product(builder, "sentence_order"),
      SentenceOrderHead::Options{.tp = builder.tensor_parallel(),
                                 .holds_first = context == nullptr || context->rank() == 0});
}

std::unique_ptr<Layer> transform(const Builder& builder) {
  Product dense(builder.shared_in_sequence("transform.weight"), builder.shared_in_sequence("transform.bias"),
                BiasAdded::by_product, builder.token_cut());
  return std::make_unique<LanguageTransform>(std::move(dense), builder.norm("transform.norm"),
                                             builder.tensor_parallel());
}

}  // namespace

Stage build_bert(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device) {
  Builder builder(config, bert_parameters(config), part, circles, device);
  Stage stage;
  if (part.embeds) stage.layers.push_back(builder.embedding());
  builder.add_blocks(stage, [&](int layer) {
    return builder.block("layers." + std::to_string(layer), layer, {.mask = Mask::none});
  });
  if (part.measures) {
    stage.layers.push_back(std::make_unique<NormLayer>(builder.norm("final_norm"), "final norm"));
    if (config.sentence_order) stage.layers.push_back(sentence_order(builder));
    stage.layers.push_back(transform(builder));
    stage.layers.push_back(builder.head());
  }
  return stage;
}

}  // namespace weft
