// Experts by their settings: what is left out follows, what no layer can do is refused.
#include "weft/model/experts.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/model/kinds.h"
#include "weft/model/layer_parts.h"

namespace weft {
namespace {

void refuse_without_experts(const ExpertsConfig& x) {
  const ExpertsConfig none;
  if (!x.layers.empty() || x.every != none.every || x.first != none.first || x.shared_hidden != 0 ||
      x.residual || x.latent != 0 || x.ffn_hidden != 0 || x.weigh_input)
    fail(Kind::usage, "model: experts are described, and {model.experts.count} is 0: say how many there are");
}

void check_groups(const ExpertsConfig& x) {
  const RouterConfig& r = x.router;
  if ((r.groups > 0) != (r.groups_kept > 0))
    fail(Kind::usage,
         "model: {model.experts.router.groups} and {model.experts.router.groups_kept} go together");
  if (r.groups == 0) return;
  if (x.count % r.groups != 0)
    fail(Kind::usage, "model: ", x.count, " experts cannot stand in ", r.groups, " equal groups");
  if (r.groups_kept > r.groups)
    fail(Kind::usage, "model: {model.experts.router.groups_kept} ", r.groups_kept, " is more than the ",
         r.groups, " groups");
  if (r.chosen < r.groups_kept || r.chosen > r.groups_kept * (x.count / r.groups))
    fail(Kind::usage, "model: ", r.chosen, " experts cannot be chosen from ", r.groups_kept, " groups of ",
         x.count / r.groups);
}

void check_room(const RouterConfig& r) {
  if (r.capacity) return;
  if (r.capacity_evaluating)
    fail(Kind::usage,
         "model: {model.experts.router.capacity_evaluating} is another room than that of training, where "
         "experts take all: add {model.experts.router.capacity}");
  if (r.filled)
    fail(Kind::usage,
         "model: {model.experts.router.filled} fills experts up to the rows that they take, and "
         "they take all: add {model.experts.router.capacity}");
  if (r.least_rows > 0)
    fail(Kind::usage,
         "model: {model.experts.router.least_rows} is a least room of experts, and they take all: add "
         "{model.experts.router.capacity}");
}

/// What Megatron has not got together either.
void check_sinkhorn(const RouterConfig& r) {
  if (std::ranges::find(r.balancing, Balancing::sinkhorn) == r.balancing.end()) return;
  if (!r.sinkhorn())
    fail(Kind::usage,
         "model: sinkhorn shares tokens out by itself: name nothing else in "
         "{model.experts.router.balancing}");
  if (r.coefficients.size() != 1 || r.coefficients.front() != 0)
    fail(Kind::usage, "model: sinkhorn is no loss and has no {model.experts.router.coefficients}");
  if (r.score != RouterScore::softmax || r.softmax_first || r.groups > 0 || r.scaling != 1)
    fail(Kind::usage,
         "model: sinkhorn has scores of its own: leave {model.experts.router.score}, "
         "{model.experts.router.softmax_first}, {model.experts.router.groups} and "
         "{model.experts.router.scaling} as they are built in");
  if (r.capacity)
    fail(Kind::usage, "model: sinkhorn shares tokens out evenly: leave {model.experts.router.capacity} out");
}

void check_router(const ExpertsConfig& x) {
  const RouterConfig& r = x.router;
  if (r.chosen > x.count)
    fail(Kind::usage, "model: {model.experts.router.chosen} ", r.chosen, " is more than the ", x.count,
         " experts");
  const bool softmax = r.score == RouterScore::softmax;
  if (softmax && !r.softmax_first && !r.sinkhorn() && r.chosen == 1)
    fail(
        Kind::usage,
        "model: softmax over the one expert that is chosen is 1 whatever the router says, and it would learn "
        "nothing: add {model.experts.router.softmax_first}");
  if (softmax && r.expert_bias)
    fail(Kind::usage,
         "model: {model.experts.router.expert_bias} is added to scores of a sigmoid or a root of "
         "softplus: change {model.experts.router.score}");
  check_groups(x);
  check_room(r);
  check_sinkhorn(r);
}

void check_balancing(const ModelConfig& m) {
  const RouterConfig& r = m.experts.router;
  if (r.coefficients.size() != 1 && r.coefficients.size() != r.balancing.size())
    fail(Kind::usage, "model: ", r.coefficients.size(), " coefficients for ", r.balancing.size(),
         " balancing losses: give one for all, or one for each");
  for (std::size_t i = 0; i < r.balancing.size(); ++i)
    if (std::count(r.balancing.begin(), r.balancing.end(), r.balancing[i]) > 1)
      fail(Kind::usage, "model: a balancing loss is named twice in {model.experts.router.balancing}");
  const bool runs = std::ranges::find(r.balancing, Balancing::global_aux_loss) != r.balancing.end();
  if (runs && m.exact)
    fail(Kind::usage,
         "model: global_aux_loss looks at the microbatches that came before, so its bits depend on "
         "the layout: leave {model.exact} out, or take seq_aux_loss");
  if (m.exact && m.ahead.layers() < m.ahead.depths && has_part(m, m.layers, LayerPart::experts))
    fail(Kind::usage,
         "model: a layer of experts that guesses several further tokens adds up its uses in an order that "
         "depends on the layout: leave {model.exact} or {model.ahead.repeated} out");
}

void fill_layers(ModelConfig& m) {
  ExpertsConfig& x = m.experts;
  if (x.layers.empty())
    for (int layer = 0; layer < m.layers; ++layer) x.layers.push_back(layer % x.every == x.first);
  if (std::ssize(x.layers) != m.layers)
    fail(Kind::usage, "model: ", x.layers.size(), " entries say which layers have experts, but there are ",
         m.layers, " layers");
  if (x.layers_with() == 0)
    fail(Kind::usage, "model: {model.experts.every} gives no layer experts: leave {model.experts.count} out");
}

bool counts(const RouterConfig& r, std::size_t i) {
  const double coefficient = r.coefficients.size() == 1 ? r.coefficients.front() : r.coefficients[i];
  return r.balancing[i] != Balancing::none && r.balancing[i] != Balancing::sinkhorn && coefficient > 0;
}

}  // namespace

int ExpertsConfig::layers_with() const {
  return count > 0 ? int(std::count_if(layers.begin(), layers.end(), [](int on) { return on != 0; })) : 0;
}

void complete_experts(ModelConfig& m) {
  ExpertsConfig& x = m.experts;
  if (x.count == 0) return refuse_without_experts(x);
  if (m.mup.on) fail(Kind::usage, "model: experts have no scale by width: leave {model.mup.on} out");
  if (x.ffn_hidden == 0) x.ffn_hidden = m.ffn_hidden;
  if (x.shared_gate && x.shared_hidden == 0)
    fail(Kind::usage,
         "model: {model.experts.shared_gate} multiplies what all tokens go through, and "
         "{model.experts.shared_hidden} is 0");
  if (x.residual && x.shared_hidden > 0)
    fail(Kind::usage,
         "model: {model.experts.residual} puts an MLP beside the chosen experts, and "
         "{model.experts.shared_hidden} another: leave one of them out");
  if (x.weigh_input && x.latent > 0)
    fail(Kind::usage,
         "model: {model.experts.weigh_input} multiplies what the router reads, and {model.experts.latent} "
         "gives experts something else: leave one of them out");
  fill_layers(m);
  if (x.router.score != RouterScore::softmax) x.router.softmax_first = false;  // which it says nothing about
  check_router(x);
  check_balancing(m);
}

void add_experts(ParameterList& list, const ModelConfig& c, const std::string& name) {
  const ExpertsConfig& x = c.experts;
  const std::int64_t h = c.hidden, inner = x.latent > 0 ? x.latent : h, f = x.ffn_hidden;
  const std::int64_t up = c.gated ? 2 * f : f, all = c.gated ? 2 * x.shared_hidden : x.shared_hidden;
  list.add(name + ".router.weight", {x.count, h}, matrix_init(c, x.count, h));
  if (has_mlp_bias(c)) list.add(name + ".router.bias", {x.count}, matrix_init(c, x.count, h));
  if (x.router.expert_bias) list.add(name + ".router.expert_bias", {x.count}, constant_init(0));
  for (int e = 0; e < x.count; ++e) {
    const std::string expert = name + ".experts." + std::to_string(e);
    add_matrix(list, expert + ".up", {up, inner, has_mlp_bias(c)}, matrix_init(c, up, inner));
    add_matrix(list, expert + ".down", {inner, f, has_mlp_bias(c)}, output_init(c, inner, f));
  }
  if (x.shared_hidden > 0) {
    add_matrix(list, name + ".shared.up", {all, h, false}, matrix_init(c, all, h));
    add_matrix(list, name + ".shared.down", {h, x.shared_hidden, false}, output_init(c, h, x.shared_hidden));
  }
  if (x.residual) {
    add_matrix(list, name + ".residual.up", {up, h, has_mlp_bias(c)}, matrix_init(c, up, h));
    add_matrix(list, name + ".residual.down", {h, f, has_mlp_bias(c)}, output_init(c, h, f));
    add_matrix(list, name + ".residual.gate", {2, h, true}, matrix_init(c, 2, h));
  }
  if (x.shared_gate) add_matrix(list, name + ".shared.gate", {1, h, false}, matrix_init(c, 1, h));
  if (x.latent == 0) return;
  add_matrix(list, name + ".latent.in", {x.latent, h, false}, matrix_init(c, x.latent, h));
  add_matrix(list, name + ".latent.out", {h, x.latent, false}, output_init(c, h, x.latent));
}

std::string_view told_as(Balancing loss) {
  switch (loss) {
    case Balancing::none:
    case Balancing::sinkhorn:
      return "";
    case Balancing::aux_loss:
      return "load_balancing_loss";
    case Balancing::seq_aux_loss:
      return "seq_load_balancing_loss";
    case Balancing::global_aux_loss:
      return "global_load_balancing_loss";
  }
  return "";
}

std::vector<NamedLoss> balancing_losses(const ModelConfig& config) {
  std::vector<NamedLoss> out;
  if (config.experts.count == 0) return out;
  const RouterConfig& r = config.experts.router;
  for (std::size_t i = 0; i < r.balancing.size(); ++i)
    if (counts(r, i)) out.push_back({std::string(told_as(r.balancing[i])), LossMean::passes});
  if (r.z_loss > 0) out.push_back({std::string(z_loss_name), LossMean::passes});
  return out;
}

int loss_number(const ModelConfig& config, std::string_view name) {
  const auto losses = kind_of(config).losses(config);
  const auto found = std::ranges::find(losses, name, &NamedLoss::name);
  if (found == losses.end()) fail(Kind::internal, "model: no loss is called ", name);
  return int(found - losses.begin());
}

std::int64_t idle_parameters(const ModelConfig& c) {
  const ExpertsConfig& x = c.experts;
  if (x.count == 0) return 0;
  const std::int64_t inner = x.latent > 0 ? x.latent : c.hidden, up = (c.gated ? 2 : 1) * x.ffn_hidden;
  const std::int64_t biases = has_mlp_bias(c) ? up + inner : 0;
  const int further = c.ahead.depths > 0 && has_part(c, c.layers, LayerPart::experts) ? c.ahead.layers() : 0;
  return std::int64_t{x.layers_with() + further} * (x.count - x.router.chosen) *
         (inner * (up + x.ffn_hidden) + biases);
}

double width_of_experts(const ModelConfig& c) {
  const ExpertsConfig& x = c.experts;
  const double inner = double(x.ffn_hidden) * x.router.chosen;
  const double share = x.latent > 0 ? double(x.latent) / double(c.hidden) : 1;
  return inner * share + double(x.beside());
}

}  // namespace weft
