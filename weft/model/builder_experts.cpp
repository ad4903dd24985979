// Layers of experts: which of them a rank holds, and which losses their routers give.
#include "weft/base/number.h"
#include "weft/model/builder.h"
#include "weft/model/experts.h"
#include "weft/nn/recompute.h"

namespace weft {
namespace {

BalancedOver over(Balancing loss) {
  if (loss == Balancing::seq_aux_loss) return BalancedOver::sequence;
  return loss == Balancing::global_aux_loss ? BalancedOver::step : BalancedOver::microbatch;
}

std::vector<BalanceLoss> losses_of(const ModelConfig& config) {
  const RouterConfig& r = config.experts.router;
  std::vector<BalanceLoss> out;
  for (std::size_t i = 0; i < r.balancing.size(); ++i) {
    const double coefficient = r.coefficients.size() == 1 ? r.coefficients.front() : r.coefficients[i];
    if (r.balancing[i] == Balancing::none || r.balancing[i] == Balancing::sinkhorn || coefficient == 0)
      continue;
    out.push_back({.over = over(r.balancing[i]),
                   .coefficient = float(coefficient),
                   .loss_number = loss_number(config, told_as(r.balancing[i]))});
  }
  return out;
}

/// What Megatron divides a loss that it tells by: its sum has the layers of further tokens in it, too.
int layers_told_of(const ModelConfig& config) { return config.experts.layers_with() + config.ahead.layers(); }

/// Weights of a choice by Sinkhorn's iteration are scores over all experts, or of the only one by itself.
RouteArgs route_of(const RouterConfig& r) {
  RouteArgs out{.score = r.score,
                .softmax_first = r.softmax_first,
                .groups = r.groups,
                .groups_kept = r.groups_kept,
                .scaling = float(r.scaling)};
  if (!r.sinkhorn()) return out;
  out.softmax_first = r.chosen > 1;
  if (r.chosen == 1) out.score = RouterScore::sigmoid;
  return out;
}

}  // namespace

/// Tensor-parallel ranks multiply tokens of their own there: their gradients are terms.
Parameter Builder::for_own_tokens(const std::string& name) const {
  Parameter parameter = shared(name);
  parameter.spread = parameter.spread.with_terms(sums_.terms(Axis::tp));
  return parameter;
}

Router Builder::router(const std::string& name, int layer) const {
  const ExpertsConfig& x = config_.experts;
  const RouterConfig& r = x.router;
  const bool further = layer >= config_.layers;
  std::optional<Parameter> bias, expert_bias;
  if (list_.has(name + ".bias")) bias = for_own_tokens(name + ".bias");
  if (r.expert_bias) {
    expert_bias = shared(name + ".expert_bias");
    expert_bias->role = Role::kept;
  }
  return {for_own_tokens(name + ".weight"),
          std::move(bias),
          std::move(expert_bias),
          {.route = route_of(r),
           .chosen = r.chosen,
           .losses = losses_of(config_),
           .z_loss = float(r.z_loss),
           .z_loss_number = r.z_loss > 0 ? loss_number(config_, z_loss_name) : 0,
           .share = 1 / float(layers_told_of(config_)),
           .rounds = further ? exact(config_.ahead.depths, config_.ahead.layers()) : 1,
           .capacity_factor = r.capacity,
           .capacity_evaluating = r.capacity_evaluating,
           .least_rows = r.least_rows,
           .filled = r.filled,
           .policy = r.drop,
           .jitter = float(r.jitter),
           .by_chance = r.by_chance,
           .precision = r.precision == RouterPrecision::f64 ? Dtype::f64 : Dtype::f32,
           .sinkhorn = r.sinkhorn(),
           .bias_rate = r.bias_rate,
           .layer = layer,
           .drop = further ? LayerDrop() : config_.layer_drop,
           .place = {layer, config_.layers}},
          {.parts = {tp_.circle, Between::sequence_cut, sums_},
           .context = context_.circle,
           .sequences = experts_.sequences,
           .batch = experts_.batch,
           .sums = sums_},
          device_};
}

/// Ranks that share an expert cut it as tensor-parallel ranks cut an MLP.
Parameter Builder::expert_parameter(const std::string& name, ExpertSide side) const {
  const auto& [full, shape, init] = list_.at(name);
  const ExpertRanks& ranks = experts_.ranks;
  const Along cut{Axis::etp, ranks.rank() % ranks.etp, ranks.etp};
  const bool whole = side == ExpertSide::down && shape.rank() == 1;
  Parameter out = whole                      ? whole_parameter(full, shape, init)
                  : side == ExpertSide::down ? column_parameter(full, shape, init, cut)
                                             : row_parameter(full, shape, init, cut);
  out.spread = spread_in(View::experts, whole ? Axes{Axis::ep} : Axes{Axis::ep, Axis::etp});
  if (side == ExpertSide::up && config_.gated) cut_in_halves(out, cut);
  out.sequences = ranks.sequences();
  return out;
}

/// The matrices, and their biases, of all experts that this rank holds.
ExpertProducts Builder::expert_products(const std::string& name, ExpertSide side) const {
  const ExpertRanks& ranks = experts_.ranks;
  const int here = exact(config_.experts.count, ranks.ep), first = ranks.ep_of(ranks.rank()) * here;
  std::vector<Parameter> weights, biases;
  for (int e = first; e < first + here; ++e) {
    const std::string matrix =
        name + ".experts." + std::to_string(e) + (side == ExpertSide::up ? ".up" : ".down");
    weights.push_back(expert_parameter(matrix + ".weight", side));
    if (list_.has(matrix + ".bias")) biases.push_back(expert_parameter(matrix + ".bias", side));
  }
  weights.front().fp8 = fp8_of(name + (side == ExpertSide::up ? ".experts.up" : ".experts.down"));
  return {std::move(weights),
          std::move(biases),
          {.sums = sums_,
           .etp = ranks.etp,
           .boxes = side == ExpertSide::up && config_.gated ? 2 : 1,
           .copies = ranks.copies(),
           .copy = ranks.copy_of(ranks.rank())}};
}

std::optional<WholeLinear> Builder::for_tokens(const std::string& name, const TensorParallel& tp) const {
  if (!list_.has(name + ".weight")) return std::nullopt;
  const auto made = [&](const std::string& of) {
    return tp.sequence_cut() ? for_own_tokens(of) : shared(of);
  };
  std::optional<Parameter> bias;
  if (list_.has(name + ".bias")) bias = made(name + ".bias");
  return WholeLinear(Product(made(name + ".weight"), std::move(bias), BiasAdded::by_product, token_cut()),
                     tp);
}

std::unique_ptr<Inner> Builder::experts(const std::string& name, int layer) const {
  const TensorParallel inside{tp_.circle, Between::sequence_cut, sums_};
  std::unique_ptr<Mlp> beside;
  for (const char* part : {".shared", ".residual"})
    if (list_.has(name + part + ".up.weight"))
      beside = std::make_unique<Mlp>(mlp(name + part, RecomputeModule::shared_experts));
  Experts::Parts parts{.up = expert_products(name, ExpertSide::up),
                       .down = expert_products(name, ExpertSide::down),
                       .shared = std::move(beside),
                       .shared_gate = for_tokens(name + ".shared.gate", tp_),
                       .residual_gate = for_tokens(name + ".residual.gate", tp_),
                       .latent_in = for_tokens(name + ".latent.in", inside),
                       .latent_out = for_tokens(name + ".latent.out", inside)};
  auto all = std::make_unique<Experts>(router(name + ".router", layer), std::move(parts),
                                       Experts::Options{.gate = gate_of(config_),
                                                        .gated = config_.gated,
                                                        .weigh_input = config_.experts.weigh_input,
                                                        .tp = tp_,
                                                        .ranks = experts_.ranks});
  if (!recomputes(RecomputeModule::experts)) return all;
  return std::make_unique<RecomputeInner>(std::move(all));
}

}  // namespace weft
