// The words of a model: where they begin, where they are measured, and who holds which of them.
#include "weft/base/number.h"
#include "weft/model/builder.h"
#include "weft/model/relative.h"
#include "weft/nn/encoder_memory.h"

namespace weft {
namespace {

float embedding_multiplier(const ModelConfig& c) {
  return float(c.embedding_multiplier * (c.mup.on ? c.mup.embedding_multiplier : 1));
}

float logits_multiplier(const ModelConfig& c) {
  return float(c.output_multiplier * (c.mup.on ? c.mup.output_multiplier : 1));
}

}  // namespace

// Each rank stores an equal number of rows; rows beyond the vocabulary are storage only and belong to no
// tensor.
std::int64_t Builder::stored_words() const {
  return divide_up(config_.padded_vocabulary, std::int64_t(tp_.size()));
}
VocabularyPart Builder::words_here() const {
  const std::int64_t first = std::min(tp_.rank() * stored_words(), config_.vocabulary);
  const std::int64_t count = std::min(config_.vocabulary - first, stored_words());
  return {.first = first, .count = count, .whole = config_.vocabulary};
}

Parameter Builder::word_matrix(const std::string& name) const {
  const WholeParameter& whole = list_.at(name);
  const VocabularyPart part = words_here();
  Parameter words;
  words.name = name;
  words.shape = {stored_words(), config_.hidden};
  if (part.count > 0)
    words.pieces = {
        {{.global = whole.shape, .offset = {part.first, 0}, .local = {part.count, config_.hidden}}, 0}};
  words.init = whole.init;
  words.spread = spread_in(View::dense, Axis::tp);
  words.role = Role::words;
  return words;
}

Parameter Builder::word_bias(const std::string& name) const {
  const WholeParameter& whole = list_.at(name);
  const VocabularyPart part = words_here();
  Parameter bias;
  bias.name = name;
  bias.shape = {stored_words()};
  if (part.count > 0)
    bias.pieces = {{{.global = whole.shape, .offset = {part.first}, .local = {part.count}}, 0}};
  bias.init = whole.init;
  bias.spread = spread_in(View::dense, Axis::tp);
  bias.decays = false;  // as no vector does
  return bias;
}

// One memory for all uses of the words in a stage, where that cannot show: in exact mode the gradients of the
// uses are trees of their own, as they are where the uses stand in several stages. Further tokens and the
// output stand in one stage.
bool Builder::words_elsewhere() const {
  const bool decodes = config_.decoder_layers > 0,
             at_the_end = config_.tied_output || config_.ahead.depths > 0;
  const int all = 1 + int(decodes) + int(at_the_end);
  const int here = int(part_.embeds) + int(decodes && holds_layer(part_, config_.layers)) +
                   int(part_.measures && at_the_end);
  return all > 1 && (here < all || sums_.uses_apart());
}
bool Builder::positions_elsewhere() const {
  if (config_.ahead.depths > 0) return sums_.uses_apart() || !part_.embeds || !part_.measures;
  const bool two_stacks = config_.decoder_layers > 0;
  return two_stacks && (sums_.uses_apart() || !part_.embeds || !holds_layer(part_, config_.layers));
}

/// Tables of the stage's first embedding, or of its own.
std::unique_ptr<Embedding> Builder::embed(Side side, bool from_first) {
  const auto table = [&](std::optional<Parameter> own, Parameter* other, bool tied) -> std::optional<Table> {
    if (from_first && other != nullptr) return Table(*other);
    if (!own) return std::nullopt;
    own->tied = tied;
    own->use = config_.decoder_layers > 0 && side == Side::text ? 1 : 0;
    return Table(std::move(*own));
  };
  return std::make_unique<Embedding>(
      *table(word_matrix("embedding.words"), words_, words_elsewhere()),
      Embedding::Added{
          .positions = table(shared_if_listed("embedding.positions"), positions_, positions_elsewhere()),
          .types = table(shared_if_listed("embedding.types"), nullptr, false)},
      Embedding::Options{.dropout = config_.embedding_norm ? 0 : float(config_.hidden_dropout),
                         .multiplier = embedding_multiplier(config_),
                         .wide = config_.residual_in_f32,
                         .first = words_here().first,
                         .side = side,
                         .tp = tp_,
                         .context = token_cut()});
}

std::unique_ptr<Layer> Builder::embedding(Side side) {
  std::unique_ptr<Embedding> layer = embed(side, words_ != nullptr && !sums_.uses_apart());
  words_ = &layer->words();
  positions_ = layer->positions();
  return layer;
}

std::unique_ptr<Layer> Builder::relative_biases(const std::string& name, const Looks& looks) const {
  const std::int64_t length = side_length(config_, looks.side);
  return std::make_unique<RelativeBiases>(
      columns_of(name), relative_buckets(config_.relative, length, looks.mask == Mask::causal), device_);
}

std::unique_ptr<LanguageHead> Builder::head() const {
  const LanguageHead::Options options{.part = words_here(),
                                      .chunk = config_.logits_at_once,
                                      .tp = tp_,
                                      .context = TokenCut(context_.circle),
                                      .multiplier = logits_multiplier(config_),
                                      .cap = float(config_.output_cap)};
  std::optional<Parameter> bias;
  if (list_.has("output.bias")) bias = word_bias("output.bias");
  Parameter* const tied = sums_.uses_apart() ? nullptr : ahead_words_ ? ahead_words_ : words_;
  if (tied && config_.tied_output) return std::make_unique<LanguageHead>(*tied, options, std::move(bias));
  Parameter output = word_matrix(list_.has("output.words") ? "output.words" : "embedding.words");
  output.tied = config_.tied_output && words_elsewhere();
  output.use = config_.decoder_layers > 0 || config_.ahead.depths > 0 ? 2 : 1;
  return std::make_unique<LanguageHead>(std::move(output), options, std::move(bias));
}

}  // namespace weft
