// What stands behind a model's last norm where it learns to guess several tokens.
#include "weft/model/builder.h"
#include "weft/nn/recompute.h"

namespace weft {

static_assert(std::size_t(most_depths) <= most_ahead);

FurtherTokens::Depth Builder::depth(const std::string& name, std::unique_ptr<Layer> block) const {
  const RecomputeConfig& recompute = config_.recompute;
  if (recompute.what == weft::Recompute::full && recompute.method == RecomputeMethod::uniform) {
    std::vector<std::unique_ptr<Layer>> alone;
    alone.push_back(std::move(block));
    block = std::make_unique<weft::RecomputeLayers>(std::move(alone), keepers());
  }
  return {norm(name + ".word_norm"), norm(name + ".hidden_norm"), whole(name + ".join"), std::move(block),
          norm(name + ".final_norm")};
}

// Every depth reads the words and writes through the output once more.
void Builder::add_further_tokens_and_head(Stage& stage, const MakeBlock& make) {
  const int depths = config_.ahead.depths;
  if (depths == 0) {
    stage.layers.push_back(head());
    return;
  }
  std::unique_ptr<Embedding> words = embed(Side::text, words_ != nullptr && !sums_.uses_apart());
  ahead_words_ = &words->words();
  ahead_words_->uses += depths - 1;
  if (ahead_words_ != words_) ahead_words_->use = 1;
  if (Parameter* const positions = words->positions()) {
    positions->uses += depths - 1;
    if (positions != positions_) positions->use = 1;
  }
  std::unique_ptr<LanguageHead> output = head();
  output->count_uses(depths);
  std::vector<FurtherTokens::Depth> all;
  for (int k = 0; k < config_.ahead.layers(); ++k)
    all.push_back(depth("ahead.layers." + std::to_string(k), make(k)));
  stage.layers.push_back(std::make_unique<FurtherTokens>(
      std::move(all), std::move(words), *output,
      FurtherTokens::Options{
          .depths = depths, .first_loss = 1, .factor = float(config_.ahead.factor / depths)}));
  stage.layers.push_back(std::move(output));
}

}  // namespace weft
