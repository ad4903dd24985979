// From a config to layers: what cuts a parameter, and over whom its gradient is a sum.
#include "weft/model/builder.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/nn/normed_inner.h"
#include "weft/nn/parallel_inner.h"
#include "weft/nn/part_of_tokens.h"
#include "weft/nn/recompute.h"
#include "weft/ops/elementwise.h"

namespace weft {

Gate gate_of(const ModelConfig& config) {
  Gate gate{.f = config.activation, .offset = float(config.gate_offset)};
  if (config.gate_limit > 0) gate.limit = float(config.gate_limit);
  return gate;
}

Builder::Builder(const ModelConfig& config, ParameterList list, const StagePart& part, const Circles& circles,
                 Device& device)
    : config_(config),
      list_(std::move(list)),
      part_(part),
      sums_(sums_of(config)),
      tp_{circles.tp, circles.between, sums_},
      context_(circles.context),
      context_layers_(circles.context_layers),
      experts_(circles.experts),
      device_(device),
      keys_(circles.keys) {
  context_.sums = sums_;
  experts_.ranks.sums = sums_;
  if (parts() > 1 && sharers() > 1 && keys_ == nullptr)
    fail(Kind::internal, "builder: ", sharers(), " ranks share a key group, and no circle of them was given");
}

Parameter Builder::shared(const std::string& name) const {
  const auto& [full, shape, init] = list_.at(name);
  return whole_parameter(full, shape, init);
}

Norm Builder::norm(const std::string& name) const {
  if (list_.has(name + ".gain")) return norm_of(name, rows_of_norm());
  NormArgs how = usual_norm();
  how.one_plus_gain = false;
  return {fixed_gain(config_.hidden, compute_type(config_.precision)), how};
}

Tensor Builder::fixed_gain(std::int64_t width, Dtype dtype) const {
  const Tensor ones = empty(device_, {width}, dtype, Use::weights);
  ops::fill(ones, 1);
  return ones;
}

NormRows Builder::rows_of_norm() const {
  return {.sums = sums_, .sequence = tp_.sequence_cut() ? &tp_.circle : nullptr, .context = token_cut()};
}

Norm Builder::norm_of(const std::string& name, const NormRows& rows) const {
  return norm_of(name, rows, usual_norm());
}

NormArgs Builder::usual_norm() const {
  return {.kind = config_.norm,
          .epsilon = float(config_.norm_epsilon),
          .one_plus_gain = config_.norm_centered_gain};
}

Norm Builder::norm_of(const std::string& name, const NormRows& rows, const NormArgs& how) const {
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
  return {std::move(gain), std::move(bias), how, rows};
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
  Parameter weight = rows_of(name + ".weight", tensor_ranks());
  weight.fp8 = fp8_of(name);
  return {Product(std::move(weight), std::move(bias), added, token_cut()), of_products(enters_outside_)};
}

RowLinear Builder::row(const std::string& name) const {
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = shared(name + ".bias");
  Parameter weight = columns_of(name + ".weight");
  weight.fp8 = fp8_of(name);
  return {Product(std::move(weight), std::move(bias), BiasAdded::by_reader, token_cut()),
          of_products(leaves_outside_)};
}

namespace {

/// Of two stacks the second is numbered on. Layers of further tokens are none of the last.
bool stays_in_bf16(const ModelConfig& config, int layer) {
  const Fp8Config& f = config.fp8;
  const bool second = layer >= config.layers && config.decoder_layers > 0;
  const int place = second ? layer - config.layers : layer,
            count = second ? config.decoder_layers : config.layers;
  return f.ends_in_bf16 && place < count && (place < f.first_layers || place >= count - f.last_layers);
}

Fp8Scaling scaling_of(Fp8Recipe recipe) {
  switch (recipe) {
    case Fp8Recipe::delayed:
      return Fp8Scaling::delayed;
    case Fp8Recipe::tensorwise:
      return Fp8Scaling::tensorwise;
    case Fp8Recipe::blockwise:
      return Fp8Scaling::blockwise;
    case Fp8Recipe::mxfp8:
      return Fp8Scaling::mxfp8;
  }
  fail(Kind::internal, "unknown recipe");
}

Fp8Rules rules_of(const Fp8Config& f) {
  return {.values = Dtype::f8e4m3,
          .grads = f.format == Fp8Format::hybrid ? Dtype::f8e5m2 : Dtype::f8e4m3,
          .scaling = scaling_of(f.recipe),
          .margin = f.margin,
          .of_window = f.amax == AmaxChoice::max,
          .remembers = f.delayed() ? f.history : 1,
          .weight_grads = f.weight_grads};
}

}  // namespace

Fp8 Builder::fp8_of(const std::string& product) const {
  if (!config_.fp8.on() || stays_in_bf16(config_, layer_)) return {};
  return {.name = product + ".fp8", .rules = rules_of(config_.fp8), .scales = {}};
}

// [gate | up]: each half is cut by itself, so the rank's rows are two boxes of the whole.
void Builder::cut_in_halves(Parameter& parameter, const Along& cut) {
  const Shard whole = parameter.pieces.front().where;
  const std::int64_t half = whole.global[0] / 2;
  const std::int64_t part = exact(half, std::int64_t{cut.ranks});
  parameter.pieces.clear();
  for (const std::int64_t side : {0, 1}) {
    Shard box = whole;
    box.local[0] = part;
    box.offset[0] = side * half + cut.rank * part;
    parameter.pieces.push_back({box, side * box.local.elements()});
  }
}

Mlp Builder::mlp(const std::string& name, RecomputeModule alone) const {
  ColumnLinear up = column(name + ".up", BiasAdded::by_reader);
  if (config_.gated) up.each_parameter([this](Parameter& p) { cut_in_halves(p, tensor_ranks()); });
  return {std::move(up),
          row(name + ".down"),
          {.gate = gate_of(config_),
           .gated = config_.gated,
           .recompute = recomputes(RecomputeModule::mlp) || recomputes(alone)}};
}

bool Builder::recomputes(RecomputeModule module) const {
  const auto& chosen = config_.recompute;
  return chosen.what == weft::Recompute::selective &&
         std::find(chosen.modules.begin(), chosen.modules.end(), module) != chosen.modules.end();
}

std::optional<TensorParallel> Builder::keepers() const {
  if (!config_.recompute.cut || tp_.size() == 1 || tp_.sequence_cut()) return std::nullopt;
  return tp_;
}

// ---- layers
namespace {

const char* block_name(LayerPart part) {
  switch (part) {
    case LayerPart::attention:
      return "attention block";
    case LayerPart::delta:
      return "delta block";
    case LayerPart::state:
      return "state block";
    case LayerPart::mlp:
      return "mlp block";
    case LayerPart::experts:
      return "experts block";
  }
  return "";
}

}  // namespace

std::unique_ptr<Inner> Builder::inner(const std::string& name, int layer, LayerPart part,
                                      const Looks& looks) {
  switch (part) {
    case LayerPart::attention:
      return attends(name + ".attention", layer, looks);
    case LayerPart::delta:
      return delta_memory(name + ".delta", layer);
    case LayerPart::state:
      return state_memory(name + ".state", layer);
    case LayerPart::mlp:
      return std::make_unique<Mlp>(mlp(name + ".mlp"));
    case LayerPart::experts:
      return experts(name, layer);
  }
  fail(Kind::internal, "model: a layer of no kind");
}

Sublayer Builder::sublayer(const std::string& name, int layer, LayerPart part, const Looks& looks) {
  Sublayer made{block_name(part), std::nullopt, inner(name, layer, part, looks)};
  if (config_.norm_places != NormPlaces::behind) made.norm = norm(name + norm_name(part));
  if (config_.norm_places != NormPlaces::before)
    made.inner = std::make_unique<NormedInner>(std::move(made.inner), norm(name + norm_behind_name(part)));
  return made;
}

// What crosses the circle is a sum over ranks wherever attention and MLP are: two of them may be one. But
// exact sums have slabs of each, and experts and what attends otherwise bring their tokens themselves.
Sublayer Builder::parallel_sublayers(const std::string& name, int layer, const Looks& looks) {
  const LayerParts parts = parts_of_layer(config_, layer);
  const bool own = config_.parallel_sublayers == ParallelSublayers::own_norms;
  const bool at_once = !sums_.in_slabs() && !config_.latent.on && parts[0] == LayerPart::attention &&
                       parts[1] == LayerPart::mlp;
  leaves_outside_ = at_once;
  enters_outside_ = at_once && !own;
  std::array<ParallelInner::Branch, 2> branches;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    branches[i].inner = inner(name, layer, parts[i], looks);
    if (own) branches[i].norm = norm(name + norm_name(parts[i]));
  }
  Sublayer made{
      "parallel block", std::nullopt,
      std::make_unique<ParallelInner>(
          std::move(branches), ParallelInner::Options{.tp = tp_,
                                                      .enters_once = enters_outside_,
                                                      .leaves_once = leaves_outside_,
                                                      .recompute_norms = recomputes(RecomputeModule::norm)})};
  leaves_outside_ = enters_outside_ = false;
  if (!own) made.norm = norm(name + norm_name(parts[0]));
  return made;
}

std::vector<Sublayer> Builder::sublayers(const std::string& name, int layer, const Looks& looks) {
  std::vector<Sublayer> made;
  if (config_.parallel_sublayers != ParallelSublayers::none) {
    made.push_back(parallel_sublayers(name, layer, looks));
    return made;
  }
  for (const LayerPart part : parts_of_layer(config_, layer)) {
    made.push_back(sublayer(name, layer, part, looks));
    if (looks.memory && part == LayerPart::attention)
      made.push_back({"cross attention block", norm(name + ".cross_norm"),
                      std::make_unique<CrossAttention>(cross_attention(name + ".cross", layer))});
  }
  return made;
}

std::unique_ptr<Layer> Builder::block(const std::string& name, int layer, const Looks& looks) {
  layer_ = layer;
  std::vector<Sublayer> sublayers = this->sublayers(name, layer, looks);
  const int parts = int(sublayers.size());
  auto block = std::make_unique<Block>(
      std::move(sublayers),
      Block::Options{
          .layer = layer,
          .first_dropout = first_dropout(layer, parts),
          .dropout = float(config_.hidden_dropout),
          .multiplier = float(config_.residual_multiplier),
          .recompute_norms = recomputes(RecomputeModule::norm),
          .residual = config_.residual_after_norm ? Block::Residual::of_norm : Block::Residual::of_input,
          .inner = config_.residual_in_f32 ? std::optional(compute_type(config_.precision)) : std::nullopt,
          .drop = layer < config_.layers ? config_.layer_drop : LayerDrop(),  // further tokens' are kept
          .place = {layer, config_.layers},
          .side = looks.side,
          .tp = tp_});
  if (!config_.token_drop.at(layer)) return block;
  return std::make_unique<PartOfTokens>(std::move(block), config_.token_drop, layer,
                                        PartOfTokens::Cuts{tp_, TokenCut(context_.circle)});
}

// Those of the layers of a stack end at twice their number; what stands behind them goes on from there.
int Builder::first_dropout(int layer, int parts) const {
  return 2 * config_.layers + parts * (layer - config_.layers);
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
      stage.layers.push_back(std::make_unique<weft::RecomputeLayers>(std::move(together), keepers()));
    else
      for (auto& layer : together) stage.layers.push_back(std::move(layer));
  }
}

}  // namespace weft
