// Latent attention of a layer: latents are whole on every tensor-parallel rank, heads are cut.
#include <numeric>

#include "weft/base/number.h"
#include "weft/model/builder.h"
#include "weft/nn/latent_attention.h"

namespace weft {

WholeLinear Builder::whole(const std::string& name) const {
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = shared_in_sequence(name + ".bias");
  Parameter weight = shared_in_sequence(name + ".weight");
  weight.fp8 = fp8_of(name);
  return {Product(std::move(weight), std::move(bias), BiasAdded::by_product, token_cut()), tp_};
}

Norm Builder::latent_norm(const std::string& name) const {
  NormArgs how = usual_norm();
  if (config_.latent.norm_epsilon > 0) how.epsilon = float(config_.latent.norm_epsilon);
  return norm_of(name, rows_of_norm(), how);
}

std::unique_ptr<Inner> Builder::latent_attention(const std::string& name, int layer, const Looks& looks) {
  const auto path = [&](const std::string& of, bool latent) -> LatentAttention::Path {
    if (!latent) return {{}, {}, column(of, BiasAdded::by_product)};
    std::optional<Norm> between;
    if (config_.qk_norm) between = latent_norm(of + "_norm");
    return {whole(of + "_down"), std::move(between), column(of + "_up", BiasAdded::by_product)};
  };
  LatentAttention::Path query = path(name + ".query", config_.latent.query_rank > 0),
                        key_value = path(name + ".key_value", true);
  const std::int64_t turned = config_.latent.turned_channels, plain = config_.channels - turned;
  ScoreRows scores{.layer = layer,
                   .first_head = tp_.rank() * exact(config_.heads, tp_.size()),
                   .unit = config_.channels,
                   .parts = {{{0, plain, ScoreRows::Of::query}, {plain, turned, ScoreRows::Of::alone}}}};
  tell_scores(query.up, scores);
  scores.unit = plain + config_.latent.value_channels;
  scores.parts = {{{0, plain, ScoreRows::Of::key}, {}}};
  tell_scores(key_value.up, scores);
  const std::int64_t leaves = sums_.key_parts(config_.heads, 1);
  return std::make_unique<LatentAttention>(
      std::move(query), std::move(key_value), row(name + ".project"),
      LatentShape{.tp = tp_,
                  .heads = attention_shape(layer, looks),
                  .turned = config_.latent.turned_channels,
                  .value = config_.latent.value_channels,
                  .leaves = leaves > 1 ? exact(leaves, std::int64_t{tp_.size()}) : 1,
                  .recompute = recomputes(RecomputeModule::latent_heads)},
      sinks(name + ".sinks"));
}

}  // namespace weft
