// From a config to layers: what cuts a parameter, and over whom its gradient is a sum.
#include "weft/model/builder.h"

#include <algorithm>
#include <cmath>

#include "weft/base/number.h"
#include "weft/model/relative.h"
#include "weft/model/rotary.h"
#include "weft/nn/encoder_memory.h"
#include "weft/nn/recompute.h"
#include "weft/nn/region.h"

namespace weft {
namespace {

float embedding_multiplier(const ModelConfig& c) {
  return float(c.embedding_multiplier * (c.mup.on ? c.mup.embedding_multiplier : 1));
}

float logits_multiplier(const ModelConfig& c) { return c.mup.on ? float(c.mup.output_multiplier) : 1; }

}  // namespace

Builder::Builder(const ModelConfig& config, ParameterList list, const StagePart& part, const Circles& circles,
                 Device& device)
    : config_(config),
      list_(std::move(list)),
      part_(part),
      sums_(sums_of(config)),
      tp_{circles.tp, circles.between, sums_},
      context_(circles.context),
      context_layers_(circles.context_layers),
      device_(device) {
  context_.sums = sums_;
}

Stage Builder::stage() {
  Stage stage;
  if (parts() > 1 && sharers() > 1) {
    stage.sharers = tp_.circle.split(tp_.rank() / sharers(), tp_.rank());
    sharers_ = stage.sharers.get();
  }
  return stage;
}

Parameter Builder::shared(const std::string& name) const {
  const auto& [full, shape, init] = list_.at(name);
  return whole_parameter(full, shape, init);
}

Norm Builder::norm(const std::string& name) const {
  Communicator* sequence = tp_.sequence_cut() ? &tp_.circle : nullptr;
  return norm_of(name, {.sums = sums_, .sequence = sequence, .context = token_cut()});
}

Norm Builder::norm_of(const std::string& name, const NormRows& rows) const {
  // In exact mode a gain's gradient is the same on all tensor-parallel ranks, who bring their pieces
  // together.
  const Axes terms = rows.sequence || rows.heads ? sums_.terms(Axis::tp) : Axes();
  Parameter gain = shared(name + ".gain");
  gain.spread = gain.spread.with_terms(terms);
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) {
    bias = shared(name + ".bias");
    bias->spread = gain.spread;
  }
  return {std::move(gain),
          std::move(bias),
          {.kind = config_.norm,
           .epsilon = float(config_.norm_epsilon),
           .one_plus_gain = config_.norm_centered_gain},
          rows};
}

Parameter Builder::shared_in_sequence(const std::string& name) const {
  Parameter parameter = shared(name);
  if (tp_.sequence_cut()) parameter.spread = parameter.spread.with_terms(sums_.terms(Axis::tp));
  return parameter;
}

std::optional<Parameter> Builder::shared_if_listed(const std::string& name) const {
  if (!list_.has(name)) return std::nullopt;
  return shared_in_sequence(name);
}

Parameter Builder::rows_of(const std::string& name, const Along& cut) const {
  const auto& [full, shape, init] = list_.at(name);
  return row_parameter(full, shape, init, cut);
}

Parameter Builder::columns_of(const std::string& name) const {
  const auto& [full, shape, init] = list_.at(name);
  return column_parameter(full, shape, init, tensor_ranks());
}

ColumnLinear Builder::column(const std::string& name, BiasAdded added) const {
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = rows_of(name + ".bias", tensor_ranks());
  return {Product(rows_of(name + ".weight", tensor_ranks()), std::move(bias), added, token_cut()), tp_};
}

RowLinear Builder::row(const std::string& name) const {
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = shared(name + ".bias");
  return {Product(columns_of(name + ".weight"), std::move(bias), BiasAdded::by_reader, token_cut()), tp_};
}

bool Builder::turns(int layer) const {
  const int skip = config_.rotary.skip_every;
  return config_.positions == Positions::rotary && (skip == 0 || (layer + 1) % skip != 0);
}

std::int64_t Builder::window(int layer) const {
  const auto& chosen = config_.window_layers;
  return chosen.empty() || chosen[std::size_t(layer)] != 0 ? config_.window : 0;
}

ContextParallel Builder::context_of(int layer) const {
  ContextParallel context = context_;
  if (!context_layers_.empty()) context.form = context_layers_[std::size_t(layer)];
  return context;
}
AttentionShape Builder::attention_shape(int layer, const Looks& looks) {
  if (turns(layer) && !angles_) angles_ = rotary_angles(config_, device_);
  const std::int64_t groups = std::max<std::int64_t>(config_.groups / tp_.size(), 1);
  const std::int64_t heads = exact(config_.heads, tp_.size());
  const double scale =
      config_.softmax_scale != 0 ? config_.softmax_scale : 1 / std::sqrt(double(config_.channels));
  return {.groups = groups,
          .per_group = exact(heads, groups),
          .channels = config_.channels,
          .head0 = tp_.rank() * heads,
          .layer = layer,
          .scale = float(scale),
          .dropout = float(config_.attention_dropout),
          .window = window(layer),
          .side = looks.side,
          .mask = looks.mask,
          .angles = turns(layer) ? angles_ : Tensor(),
          .pairing = config_.rotary.interleaved ? Pairing::neighbours : Pairing::halves,
          .context = context_of(layer),
          .parts = {.here = parts_here(), .sharers = sharers_},
          .no_distance = config_.positions == Positions::relative ? side_length(config_, looks.side) - 1 : 0};
}

// Fewer groups than ranks: neighbours share a group. Each has its own queries of it, and all have its key
// and value.
void Builder::share_group(Parameter& parameter) const {
  const int group = tp_.rank() / sharers();
  const std::int64_t per_group = exact(config_.heads, config_.groups);
  const std::int64_t heads = exact(config_.heads, tp_.size());
  Shard queries = parameter.pieces.front().where, key_value = queries;
  const auto take = [&](Shard& box, std::int64_t head, std::int64_t count) {
    box.offset[0] = (group * (per_group + 2) + head) * config_.channels;
    box.local[0] = count * config_.channels;
  };
  take(queries, neighbour() * heads, heads);
  take(key_value, per_group, 2);
  parameter.pieces = {{queries, 0}, {key_value, queries.local.elements()}};
  parameter.shape[0] = (heads + 2) * config_.channels;
  parameter.shared = {.along = Axis::tp, .ranks = sharers(), .partial = !sums_.terms(Axis::tp).empty()};
}

KeyRows Builder::key_rows() const {
  if (parts() == 1) return {};
  const std::int64_t rows = 2 * config_.channels, share = exact(rows, sharers());
  return {.groups = std::max(config_.groups / tp_.size(), 1),
          .of_group = rows,
          .counted = {neighbour() * share, share}};
}

ColumnLinear Builder::qkv(const std::string& name) const {
  const bool shared = sharers() > 1;
  const Along cut = shared ? Along{Axis::tp} : tensor_ranks();
  Parameter weight = rows_of(name + ".weight", cut);
  weight.bands = {exact(config_.heads, config_.groups) * config_.channels, config_.channels,
                  config_.channels};
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = rows_of(name + ".bias", cut);
  if (shared) share_group(weight);
  if (shared && bias) share_group(*bias);
  return {Product(std::move(weight), std::move(bias), BiasAdded::by_product, token_cut(), key_rows()), tp_};
}

SelfAttention Builder::attention(const std::string& name, int layer, const Looks& looks) {
  std::optional<SelfAttention::HeadNorms> norms;
  // Every tensor-parallel rank sees its own heads only, so these gradients are partial even without
  // sequence cuts.
  const NormRows keys{.sums = sums_,
                      .heads = tp_.size() > 1 ? &tp_.circle : nullptr,
                      .context = token_cut(),
                      .counted = neighbour() == 0};
  NormRows queries = keys;
  queries.parts = parts_here();
  queries.counted = true;
  if (config_.qk_norm)
    norms.emplace(
        SelfAttention::HeadNorms{norm_of(name + ".q_norm", queries), norm_of(name + ".k_norm", keys)});
  return {qkv(name + ".qkv"), row(name + ".project"), std::move(norms), attention_shape(layer, looks)};
}

// Its dropout has a place of its own behind all layers.
CrossAttention Builder::cross_attention(const std::string& name, int layer) {
  AttentionShape shape = attention_shape(layer, {.mask = Mask::none, .memory = true});
  shape.layer = layer + config_.decoder_layers;
  shape.window = 0;
  shape.angles = {};
  shape.no_distance = 0;
  return {column(name + ".query", BiasAdded::by_product), column(name + ".key_value", BiasAdded::by_product),
          row(name + ".project"), shape};
}

// [gate | up]: each half is cut by itself, so the rank's rows are two boxes of the whole.
void Builder::cut_in_halves(Parameter& parameter) const {
  const Shard whole = parameter.pieces.front().where;
  const std::int64_t half = whole.global[0] / 2;
  const std::int64_t part = exact(half, tp_.size());
  parameter.pieces.clear();
  for (const std::int64_t side : {0, 1}) {
    Shard box = whole;
    box.local[0] = part;
    box.offset[0] = side * half + tp_.rank() * part;
    parameter.pieces.push_back({box, side * box.local.elements()});
  }
}

Mlp Builder::mlp(const std::string& name) const {
  ColumnLinear up = column(name + ".up", BiasAdded::by_reader);
  if (config_.gated) up.each_parameter([this](Parameter& p) { cut_in_halves(p); });
  return {std::move(up),
          row(name + ".down"),
          {.activation = config_.activation,
           .gated = config_.gated,
           .recompute = recomputes(RecomputeModule::mlp)}};
}

bool Builder::recomputes(RecomputeModule module) const {
  const auto& chosen = config_.recompute;
  return chosen.what == weft::Recompute::selective &&
         std::find(chosen.modules.begin(), chosen.modules.end(), module) != chosen.modules.end();
}

// ---- layers
std::unique_ptr<Layer> Builder::block(const std::string& name, int layer, const Looks& looks) {
  std::vector<Sublayer> sublayers;
  sublayers.push_back({"attention block", norm(name + ".attention_norm"),
                       std::make_unique<SelfAttention>(attention(name + ".attention", layer, looks))});
  if (looks.memory)
    sublayers.push_back({"cross attention block", norm(name + ".cross_norm"),
                         std::make_unique<CrossAttention>(cross_attention(name + ".cross", layer))});
  sublayers.push_back({"mlp block", norm(name + ".mlp_norm"), std::make_unique<Mlp>(mlp(name + ".mlp"))});
  return std::make_unique<Block>(
      std::move(sublayers),
      Block::Options{
          .layer = layer,
          .first_dropout = looks.memory ? 3 * layer - config_.layers : 2 * layer,
          .dropout = float(config_.hidden_dropout),
          .recompute_norms = recomputes(RecomputeModule::norm),
          .residual = config_.residual_after_norm ? Block::Residual::of_norm : Block::Residual::of_input,
          .side = looks.side,
          .tp = tp_});
}

// Full recompute: uniform wraps every run of `layers` blocks, block wraps each of the first `layers` of the
// stage.
void Builder::add_blocks(Stage& stage, const MakeBlock& make) const {
  add_blocks(stage, part_.first_layer, part_.first_layer + part_.layers, make);
}
void Builder::add_blocks(Stage& stage, int from, int to, const MakeBlock& make) const {
  const RecomputeConfig& recompute = config_.recompute;
  const bool full = recompute.what == weft::Recompute::full;
  const bool uniform = recompute.method == RecomputeMethod::uniform;
  const int run = full && uniform ? std::max(recompute.layers, 1) : 1;
  for (int i = from; i < to; i += run) {
    std::vector<std::unique_ptr<Layer>> together;
    for (int k = i; k < std::min(i + run, to); ++k) together.push_back(make(k));
    if (full && (uniform || i - part_.first_layer < recompute.layers))
      stage.layers.push_back(std::make_unique<weft::RecomputeLayers>(std::move(together)));
    else
      for (auto& layer : together) stage.layers.push_back(std::move(layer));
  }
}

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
  return bias;
}

// One memory for all uses of the words in a stage, where that cannot show: in exact mode the gradients of the
// uses are trees of their own, as they are where the uses stand in several stages.
bool Builder::words_elsewhere() const {
  const bool decodes = config_.decoder_layers > 0;
  const int all = 1 + int(decodes) + int(config_.tied_output);
  const int here = int(part_.embeds) + int(decodes && holds_layer(part_, config_.layers)) +
                   int(part_.measures && config_.tied_output);
  return all > 1 && (here < all || sums_.exact);
}
std::unique_ptr<Layer> Builder::embedding(Side side) {
  const bool again = words_ != nullptr && !sums_.exact;
  const auto table = [&](std::optional<Parameter> own, Parameter* other, bool tied) -> std::optional<Table> {
    if (again && other != nullptr) return Table(*other);
    if (!own) return std::nullopt;
    own->tied = tied;
    return Table(std::move(*own));
  };
  const bool two_stacks = config_.decoder_layers > 0;
  const bool other_stack =
      two_stacks && (sums_.exact || !part_.embeds || !holds_layer(part_, config_.layers));
  auto layer = std::make_unique<Embedding>(
      *table(word_matrix("embedding.words"), words_, words_elsewhere()),
      Embedding::Added{.positions = table(shared_if_listed("embedding.positions"), positions_, other_stack),
                       .types = table(shared_if_listed("embedding.types"), nullptr, false)},
      Embedding::Options{.dropout = float(config_.hidden_dropout),
                         .multiplier = embedding_multiplier(config_),
                         .first = words_here().first,
                         .side = side,
                         .tp = tp_,
                         .context = token_cut()});
  words_ = &layer->words();
  positions_ = layer->positions();
  return layer;
}

std::unique_ptr<Layer> Builder::relative_biases(const std::string& name, const Looks& looks) const {
  const std::int64_t length = side_length(config_, looks.side);
  return std::make_unique<RelativeBiases>(
      columns_of(name), relative_buckets(config_.relative, length, looks.mask == Mask::causal), device_);
}

std::unique_ptr<Layer> Builder::head() const {
  const LanguageHead::Options options{.part = words_here(),
                                      .loss = {},
                                      .tp = tp_,
                                      .context = TokenCut(context_.circle),
                                      .multiplier = logits_multiplier(config_)};
  std::optional<Parameter> bias;
  if (list_.has("output.bias")) bias = word_bias("output.bias");
  if (words_ && config_.tied_output && !sums_.exact)
    return std::make_unique<LanguageHead>(*words_, options, std::move(bias));
  Parameter output = word_matrix(list_.has("output.words") ? "output.words" : "embedding.words");
  output.tied = config_.tied_output && words_elsewhere();
  return std::make_unique<LanguageHead>(std::move(output), options, std::move(bias));
}

}  // namespace weft
