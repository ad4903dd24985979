// From a config to layers: every parameter of the family's list gets its place in the whole here.
#include "weft/model/gpt/gpt.h"

#include <algorithm>
#include <cmath>

#include "weft/base/number.h"
#include "weft/model/rotary.h"
#include "weft/nn/attention.h"
#include "weft/nn/block.h"
#include "weft/nn/embedding.h"
#include "weft/nn/heads.h"
#include "weft/nn/mlp.h"
#include "weft/nn/recompute.h"
#include "weft/nn/region.h"

namespace weft {
namespace {

class Builder {
 public:
  Builder(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device)
      : config_(config),
        list_(gpt_parameters(config)),
        part_(part),
        sums_(sums_of(config)),
        tp_{circles.tp, circles.between, sums_},
        context_{circles.context.circle, circles.context.form, sums_},
        device_(device) {}

  Stage build() {
    Stage stage;
    if (parts() > 1 && sharers() > 1) {
      stage.sharers = tp_.circle.split(tp_.rank() / sharers(), tp_.rank());
      sharers_ = stage.sharers.get();
    }
    if (part_.embeds) stage.layers.push_back(embedding());
    add_blocks(stage);
    if (part_.measures) {
      stage.layers.push_back(std::make_unique<FinalNorm>(norm("final_norm")));
      stage.layers.push_back(head());
    }
    return stage;
  }

 private:
  // ---- pieces of a block
  /// Held whole by every tensor-parallel rank.
  Parameter shared(const std::string& name) const {
    const auto& [full, shape, init] = list_.at(name);
    return whole_parameter(full, shape, init);
  }
  Along tensor_ranks() const { return {Axis::tp, tp_.rank(), tp_.size()}; }
  TokenCut token_cut() const { return sums_.tokens(context_.circle); }
  Norm norm(const std::string& name) const {
    Communicator* sequence = tp_.sequence_cut() ? &tp_.circle : nullptr;
    return norm_of(name, {.sums = sums_, .sequence = sequence, .context = token_cut()});
  }
  Norm norm_of(const std::string& name, const NormRows& rows) const {
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
  /// Cut over ranks along its rows, or along its columns.
  Parameter rows_of(const std::string& name, const Along& cut) const {
    const auto& [full, shape, init] = list_.at(name);
    return row_parameter(full, shape, init, cut);
  }
  Parameter columns_of(const std::string& name) const {
    const auto& [full, shape, init] = list_.at(name);
    return column_parameter(full, shape, init, tensor_ranks());
  }
  ColumnLinear column(const std::string& name, BiasAdded added) const {
    std::optional<Parameter> bias;
    if (list_.has(name + ".bias")) bias = rows_of(name + ".bias", tensor_ranks());
    return {Product(rows_of(name + ".weight", tensor_ranks()), std::move(bias), added, token_cut()), tp_};
  }
  RowLinear row(const std::string& name) const {
    std::optional<Parameter> bias;
    if (list_.has(name + ".bias")) bias = shared(name + ".bias");
    return {Product(columns_of(name + ".weight"), std::move(bias), BiasAdded::by_reader, token_cut()), tp_};
  }

  bool turns(int layer) const {
    const int skip = config_.rotary.skip_every;
    return config_.positions == Positions::rotary && (skip == 0 || (layer + 1) % skip != 0);
  }
  std::int64_t window(int layer) const {
    const auto& chosen = config_.window_layers;
    return chosen.empty() || chosen[std::size_t(layer)] != 0 ? config_.window : 0;
  }
  AttentionShape attention_shape(int layer) {
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
            .angles = turns(layer) ? angles_ : Tensor(),
            .pairing = config_.rotary.interleaved ? Pairing::neighbours : Pairing::halves,
            .context = context_,
            .parts = {.here = parts_here(), .sharers = sharers_}};
  }
  /// Of a key group, in sums over its heads; 1 where nobody asks for the same bits.
  std::int64_t parts() const { return sums_.key_parts(config_.heads, config_.groups); }
  std::int64_t parts_here() const { return parts() > 1 ? parts() / sharers() : 1; }
  int sharers() const { return std::max(tp_.size() / config_.groups, 1); }
  int neighbour() const { return tp_.rank() % sharers(); }
  // Fewer groups than ranks: neighbours share a group. Each has its own queries of it, and all have its key
  // and value.
  void share_group(Parameter& parameter) const {
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
  KeyRows key_rows() const {
    if (parts() == 1) return {};
    const std::int64_t rows = 2 * config_.channels, share = exact(rows, sharers());
    return {.groups = std::max(config_.groups / tp_.size(), 1),
            .of_group = rows,
            .counted = {neighbour() * share, share}};
  }
  ColumnLinear qkv(const std::string& name) const {
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
  SelfAttention attention(const std::string& name, int layer) {
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
    return {qkv(name + ".qkv"), row(name + ".project"), std::move(norms), attention_shape(layer)};
  }

  // [gate | up]: each half is cut by itself, so the rank's rows are two boxes of the whole.
  void cut_in_halves(Parameter& parameter) const {
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
  Mlp mlp(const std::string& name) const {
    ColumnLinear up = column(name + ".up", BiasAdded::by_reader);
    if (config_.gated) up.each_parameter([this](Parameter& p) { cut_in_halves(p); });
    return {std::move(up),
            row(name + ".down"),
            {.activation = config_.activation,
             .gated = config_.gated,
             .recompute = recomputes(RecomputeModule::mlp)}};
  }
  bool recomputes(RecomputeModule module) const {
    const auto& chosen = config_.recompute;
    return chosen.what == weft::Recompute::selective &&
           std::find(chosen.modules.begin(), chosen.modules.end(), module) != chosen.modules.end();
  }

  // ---- layers
  std::unique_ptr<Layer> block(int layer) {
    const std::string name = "layers." + std::to_string(layer);
    std::vector<Sublayer> sublayers;
    sublayers.push_back({"attention block", norm(name + ".attention_norm"),
                         std::make_unique<SelfAttention>(attention(name + ".attention", layer))});
    sublayers.push_back({"mlp block", norm(name + ".mlp_norm"), std::make_unique<Mlp>(mlp(name + ".mlp"))});
    return std::make_unique<Block>(std::move(sublayers),
                                   Block::Options{.layer = layer,
                                                  .first_dropout = 2 * layer,
                                                  .dropout = float(config_.hidden_dropout),
                                                  .recompute_norms = recomputes(RecomputeModule::norm),
                                                  .tp = tp_});
  }

  // Full recompute: uniform wraps every run of `layers` blocks, block wraps each of the first `layers` of the
  // stage.
  void add_blocks(Stage& stage) {
    const RecomputeConfig& recompute = config_.recompute;
    const bool full = recompute.what == weft::Recompute::full;
    const bool uniform = recompute.method == RecomputeMethod::uniform;
    const int run = full && uniform ? std::max(recompute.layers, 1) : 1;
    for (int i = 0; i < part_.layers; i += run) {
      std::vector<std::unique_ptr<Layer>> together;
      for (int k = i; k < std::min(i + run, part_.layers); ++k)
        together.push_back(block(part_.first_layer + k));
      if (full && (uniform || i < recompute.layers))
        stage.layers.push_back(std::make_unique<weft::RecomputeLayers>(std::move(together)));
      else
        for (auto& layer : together) stage.layers.push_back(std::move(layer));
    }
  }

  // Each rank stores an equal number of rows; rows beyond the vocabulary are storage only and belong to no
  // tensor.
  std::int64_t stored_words() const { return divide_up(config_.padded_vocabulary, std::int64_t(tp_.size())); }
  VocabularyPart words_here() const {
    const std::int64_t first = std::min(tp_.rank() * stored_words(), config_.vocabulary);
    const std::int64_t count = std::min(config_.vocabulary - first, stored_words());
    return {.first = first, .count = count, .whole = config_.vocabulary};
  }
  Parameter word_matrix(const std::string& name) const {
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
  // One memory for both uses of the words, where that cannot show: in exact mode the gradients of the uses
  // are trees of their own, as they are where the uses stand in two stages.
  bool shares_words() const { return config_.tied_output && part_.embeds && part_.measures && !sums_.exact; }
  std::unique_ptr<Layer> embedding() {
    Parameter words = word_matrix("embedding.words");
    words.tied = config_.tied_output && !shares_words();
    std::optional<Parameter> positions;
    if (list_.has("embedding.positions")) {
      positions = shared("embedding.positions");
      if (tp_.sequence_cut()) positions->spread = positions->spread.with_terms(sums_.terms(Axis::tp));
    }
    auto layer =
        std::make_unique<Embedding>(std::move(words), std::move(positions),
                                    Embedding::Options{.dropout = float(config_.hidden_dropout),
                                                       .multiplier = float(config_.embedding_multiplier),
                                                       .first = words_here().first,
                                                       .tp = tp_,
                                                       .context = token_cut()});
    words_ = &layer->words();
    return layer;
  }
  std::unique_ptr<Layer> head() const {
    const LanguageHead::Options options{
        .part = words_here(), .loss = {}, .tp = tp_, .context = TokenCut(context_.circle)};
    if (words_ && shares_words()) return std::make_unique<LanguageHead>(*words_, options);
    Parameter output = word_matrix(list_.has("output.words") ? "output.words" : "embedding.words");
    output.tied = config_.tied_output;
    return std::make_unique<LanguageHead>(std::move(output), options);
  }

  const ModelConfig& config_;
  ParameterList list_;
  StagePart part_;
  SumRules sums_;
  TensorParallel tp_;
  ContextParallel context_;
  Device& device_;
  Communicator* sharers_ = nullptr;
  Tensor angles_;               // one table for all layers
  Parameter* words_ = nullptr;  // of this stage's embedding
};

}  // namespace

Stage build_gpt(const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device) {
  return Builder(config, part, circles, device).build();
}

}  // namespace weft
