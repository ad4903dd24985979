// Attention of one layer: its heads, what they turn by, and which keys they see.
#include <algorithm>

#include "weft/base/number.h"
#include "weft/model/alibi.h"
#include "weft/model/builder.h"
#include "weft/model/relative.h"
#include "weft/model/rotary.h"
#include "weft/ops/elementwise.h"

namespace weft {

bool Builder::turns(int layer) const {
  const auto& skipped = config_.rotary.skip_layers;
  return turns_channels(config_) && (skipped.empty() || skipped[std::size_t(as_layer(layer))] == 0);
}

// Layers of further tokens are numbered on, and are as the last layer is.
int Builder::as_layer(int layer) const { return std::min(layer, config_.layers - 1); }

bool Builder::sees_part(int layer) const {
  const auto& chosen = config_.window_layers;
  return chosen.empty() || chosen[std::size_t(as_layer(layer))] != 0;
}

std::int64_t Builder::window(int layer) const { return sees_part(layer) ? config_.window : 0; }

ContextParallel Builder::context_of(int layer) const {
  ContextParallel context = context_;
  if (!context_layers_.empty()) context.form = context_layers_[std::size_t(as_layer(layer))];
  return context;
}

Tensor Builder::angles(int layer) {
  if (!turns(layer)) return {};
  const bool otherwise = config_.rotary.window_base && window(layer) > 0;
  Tensor& table = otherwise ? window_angles_ : angles_;
  if (!table) table = otherwise ? rotary_angles_of_window(config_, device_) : rotary_angles(config_, device_);
  return table;
}

/// Where they are not those of keys.
Tensor Builder::query_angles(int layer) {
  const ScoresConfig& scores = config_.scores;
  const bool turning = turns(layer);
  if (scores.growth_every == 0 || (turning && scores.growth_of == QueryGrowth::still)) return {};
  Tensor& table = turning ? growing_angles_ : growth_;
  if (!table) table = turning ? growing_angles(config_, device_) : growth_of_queries(config_, device_);
  return table;
}

/// Of this rank's heads, in all layers alike.
Tensor Builder::falling() {
  if (config_.positions != Positions::alibi || falling_) return falling_;
  const std::int64_t heads = exact(config_.heads, tp_.size()), first = tp_.rank() * heads;
  falling_ = alibi_biases(config_, {first, first + heads}, device_);
  return falling_;
}

AttentionShape Builder::attention_shape(int layer, const Looks& looks) {
  const std::int64_t groups = std::max<std::int64_t>(config_.groups / tp_.size(), 1);
  const std::int64_t heads = exact(config_.heads, tp_.size());
  const bool by_distance = config_.positions == Positions::relative || config_.positions == Positions::alibi;
  return {.groups = groups,
          .per_group = exact(heads, groups),
          .channels = config_.channels,
          .gated = config_.attention_gate,
          .normed_last = config_.qk_norm_turned,
          .limit = float(config_.qkv_limit),
          .head0 = tp_.rank() * heads,
          .layer = layer,
          .scale = float(attention_scale(config_)),
          .dropout = float(config_.attention_dropout),
          .cap = float(config_.scores.cap),
          .window = window(layer),
          .chunk = sees_part(layer) ? config_.scores.chunk : 0,
          .side = looks.side,
          .mask = looks.mask,
          .angles = angles(layer),
          .query_angles = query_angles(layer),
          .pairing = config_.rotary.interleaved ? Pairing::neighbours : Pairing::halves,
          .context = context_of(layer),
          .parts = {.here = parts_here(), .sharers = parts() > 1 ? keys_ : nullptr},
          .falling = falling(),
          .no_distance = by_distance ? side_length(config_, looks.side) - 1 : 0};
}

// Fewer groups than ranks: neighbours share a group. Each has its own queries of it and their gates, and all
// have its key and value.
void Builder::share_group(Parameter& parameter) const {
  const int group = tp_.rank() / sharers(), of_a_query = config_.attention_gate ? 2 : 1;
  const std::int64_t per_group = exact(config_.heads, config_.groups);
  const std::int64_t heads = exact(config_.heads, tp_.size());
  const Shard whole = parameter.pieces.front().where;
  parameter.pieces.clear();
  std::int64_t at = 0;
  const auto take = [&](std::int64_t head, std::int64_t count) {
    Shard box = whole;
    box.offset[0] = (group * (of_a_query * per_group + 2) + head) * config_.channels;
    box.local[0] = count * config_.channels;
    parameter.pieces.push_back({box, at});
    at += box.local.elements();
  };
  for (int kind = 0; kind < of_a_query; ++kind) take(kind * per_group + neighbour() * heads, heads);
  take(of_a_query * per_group, 2);
  parameter.shape[0] = (of_a_query * heads + 2) * config_.channels;
  parameter.shared = neighbours();
}

Neighbours Builder::neighbours() const {
  return {.along = Axis::tp, .ranks = sharers(), .partial = !sums_.terms(Axis::tp).empty()};
}

KeyRows Builder::key_rows() const {
  if (parts() == 1) return {};
  const std::int64_t rows = 2 * config_.channels, share = exact(rows, sharers());
  return {.groups = std::max(config_.groups / tp_.size(), 1),
          .of_group = rows,
          .counted = {neighbour() * share, share}};
}

void Builder::tell_scores(ColumnLinear& of, const ScoreRows& rows) const {
  if (rows.layer >= config_.layers) return;
  of.each_parameter([&](Parameter& parameter) {
    if (parameter.shape.rank() == 2) parameter.scores = rows;
  });
}

// Gates that heads may have lie between queries and keys. Of a group that ranks share all its heads count.
ScoreRows Builder::scores_of_group(int layer) const {
  const std::int64_t d = config_.channels, of_a_query = config_.attention_gate ? 2 : 1,
                     per_group = exact(config_.heads, config_.groups), here = per_group / sharers(),
                     groups = std::max(config_.groups / tp_.size(), 1);
  return {.layer = layer,
          .first_head = tp_.rank() / sharers() * groups * per_group,
          .heads = per_group,
          .unit = (of_a_query * here + 2) * d,
          .parts = {{{0, here * d, ScoreRows::Of::query}, {of_a_query * here * d, d, ScoreRows::Of::key}}}};
}

ColumnLinear Builder::qkv(const std::string& name, int layer) const {
  const bool shared = sharers() > 1;
  const Along cut = shared ? Along{Axis::tp} : tensor_ranks();
  Parameter weight = rows_of(name + ".weight", cut);
  weight.fp8 = fp8_of(name);
  const std::int64_t queries = exact(config_.heads, config_.groups) * config_.channels;
  weight.bands = {queries, config_.channels, config_.channels};
  if (config_.attention_gate) weight.bands.insert(weight.bands.begin(), queries);
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = rows_of(name + ".bias", cut);
  if (shared) share_group(weight);
  if (shared && bias) share_group(*bias);
  ColumnLinear out(
      Product(std::move(weight), std::move(bias), BiasAdded::by_product, token_cut(), key_rows()),
      of_products(enters_outside_));
  tell_scores(out, scores_of_group(layer));
  return out;
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
  const NormRows rows{.sums = sums_, .context = token_cut()};
  if (config_.qk_norm_each) {
    norms.emplace(SelfAttention::HeadNorms{norm_of_each(name + ".q_norm", rows, false),
                                           norm_of_each(name + ".k_norm", rows, sharers() > 1)});
  } else if (config_.qk_norm_whole) {
    norms.emplace(SelfAttention::HeadNorms{norm_of(name + ".q_norm", rows), norm_of(name + ".k_norm", rows),
                                           &tp_.circle});
  } else if (config_.qk_norm && (turns(layer) || !config_.qk_norm_turning))
    norms.emplace(
        SelfAttention::HeadNorms{head_norm(name + ".q_norm", queries), head_norm(name + ".k_norm", keys)});
  return {qkv(name + ".qkv", layer), row(name + ".project"), std::move(norms), attention_shape(layer, looks),
          sinks(name + ".sinks")};
}

// Of key heads that ranks share each has the gains of its own one.
Norm Builder::norm_of_each(const std::string& name, const NormRows& rows, bool shared) const {
  Parameter gain = rows_of(name + ".gain", shared ? Along{Axis::tp} : tensor_ranks());
  if (shared) {
    Shard& box = gain.pieces.front().where;
    box.offset[0] = tp_.rank() / sharers() * config_.channels;
    box.local[0] = config_.channels;
    gain.shape = box.local;
    gain.shared = neighbours();
  }
  return {std::move(gain), std::nullopt, usual_norm(), rows};
}

Norm Builder::head_norm(const std::string& name, const NormRows& rows) const {
  if (!config_.qk_norm_plain) return norm_of(name, rows);
  NormArgs how = usual_norm();
  how.kind = NormKind::rms;
  how.one_plus_gain = false;
  return {fixed_gain(config_.channels, Dtype::f32), how};
}

Sinks Builder::sinks(const std::string& name) const {
  if (config_.sink == Sink::none) return {};
  if (config_.sink == Sink::learned) return Sinks(rows_of(name, tensor_ranks()));
  const Tensor fixed = empty(device_, {exact(config_.heads, tp_.size())}, Dtype::f32, Use::weights);
  ops::fill(fixed, 0);
  return Sinks(fixed);
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

std::unique_ptr<Inner> Builder::attends(const std::string& name, int layer, const Looks& looks) {
  if (config_.latent.on) return latent_attention(name, layer, looks);
  return std::make_unique<SelfAttention>(attention(name, layer, looks));
}

}  // namespace weft
