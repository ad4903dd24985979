// ExpertsConfig: which layers are mixtures of experts, and of what kind.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/tensor/routing.h"

namespace weft {

/// What keeps experts busy alike: a loss over a microbatch, each sequence, or a step so far; or a choice that
/// gives all as many tokens; or nothing.
enum class Balancing : std::uint8_t { none, aux_loss, seq_aux_loss, global_aux_loss, sinkhorn };

constexpr std::array<std::string_view, 5> words(Balancing) {
  return {"none", "aux_loss", "seq_aux_loss", "global_aux_loss", "sinkhorn"};
}

/// What a router compares experts in: logits, scores, losses and their gradients.
enum class RouterPrecision : std::uint8_t { f32, f64 };

constexpr std::array<std::string_view, 2> words(RouterPrecision) { return {"f32", "f64"}; }

struct RouterConfig {
  int chosen = 2;
  RouterScore score = RouterScore::softmax;
  bool softmax_first = false;
  int groups = 0, groups_kept = 0;
  double scaling = 1.0;
  bool expert_bias = false;
  double bias_rate = 1e-3;
  std::vector<Balancing> balancing = {Balancing::aux_loss};
  std::vector<double> coefficients = {0.0};  // one for all, or one for each
  double z_loss = 0.0;
  std::optional<double> capacity;  // of an expert, times even shares; none: it takes all
  DropPolicy drop = DropPolicy::probs;
  std::optional<double> capacity_evaluating;  // where nobody trains; none: the same
  int least_rows = 0;                         // that an expert takes, however small its share
  bool filled = false;                        // what an expert has no rows for, it computes on zeros
  double jitter = 0.0;                        // of what a router reads, a share of it at most
  bool by_chance = false;                     // whatever is read: to measure speed
  RouterPrecision precision = RouterPrecision::f32;

  bool sinkhorn() const { return balancing.size() == 1 && balancing.front() == Balancing::sinkhorn; }
};

struct ExpertsConfig {
  int count = 0;  // 0: no layer has experts
  int every = 1;  // fills `layers`: layer i, counted from 0, has experts where i % every is `first`
  int first = 0;
  std::vector<int> layers;         // one 0 or 1 a layer
  std::int64_t ffn_hidden = 0;     // of one expert; 0: as the MLP's
  std::int64_t shared_hidden = 0;  // of what all tokens go through, too; 0: nothing
  bool shared_gate = false;
  bool residual = false;     // an MLP as wide as an expert beside them, and a gate that weighs the two
  std::int64_t latent = 0;   // channels that experts work on; 0: the model's
  bool weigh_input = false;  // what experts read is multiplied by their weights, not what they give
  RouterConfig router;

  bool at(int layer) const { return count > 0 && layers[std::size_t(layer)] != 0; }
  /// Inner width of what computes every token beside the chosen experts.
  std::int64_t beside() const { return residual ? ffn_hidden : shared_hidden; }
  /// Layers that have experts.
  int layers_with() const;
};

template <class Visitor>
void describe(Visitor& v, RouterConfig& c) {
  v("chosen", c.chosen, OnResume::model, "experts that compute each token", legal::size);
  v("score", c.score, OnResume::model, "what a router's logits become before experts are compared");
  v("softmax_first", c.softmax_first, OnResume::model,
    "softmax over all experts, of which the chosen keep theirs, instead of over the chosen");
  v("groups", c.groups, OnResume::model, "groups of experts that compete first (0: none)",
    legal::size_or_none);
  v("groups_kept", c.groups_kept, OnResume::model, "groups that experts are chosen from",
    legal::size_or_none);
  v("scaling", c.scaling, OnResume::model, "weights of the chosen are multiplied by this", legal::positive);
  v("expert_bias", c.expert_bias, OnResume::model,
    "what is added to scores to choose, moved by each step's counts");
  v("bias_rate", c.bias_rate, OnResume::step, "by how much it moves", legal::not_negative);
  v("balancing", c.balancing, OnResume::step, "losses that keep experts busy alike");
  v("coefficients", c.coefficients, OnResume::step,
    "their weights in the objective: one for all, or one each", legal::not_negative);
  v("z_loss", c.z_loss, OnResume::step, "weight of the squared logarithm of the sum of exp(logits)",
    legal::not_negative);
  v("capacity", c.capacity, OnResume::step,
    "rows that an expert takes, times an even share; what is more is dropped", legal::positive);
  v("drop", c.drop, OnResume::step, "who stays where there are more: the greatest weights, or the first");
  v("capacity_evaluating", c.capacity_evaluating, OnResume::free,
    "the same where nobody trains (none: as in training)", legal::positive);
  v("least_rows", c.least_rows, OnResume::step, "rows that an expert takes, however small its share",
    legal::size_or_none);
  v("filled", c.filled, OnResume::free,
    "experts compute as many rows as they take, zeros where fewer came, so that no host asks how many");
  v("jitter", c.jitter, OnResume::step,
    "noise on what routers read in training: a factor from 1 - this to 1 + this", legal::below_one);
  v("by_chance", c.by_chance, OnResume::step, "choose experts by chance, to measure speed");
  v("precision", c.precision, OnResume::step, "type of logits, scores, losses and their gradients");
}

template <class Visitor>
void describe(Visitor& v, ExpertsConfig& c) {
  v("count", c.count, OnResume::model, "experts of a layer (0: an MLP instead)", legal::from_to(0, 65536));
  v("every", c.every, OnResume::model, "every n-th layer has experts", legal::size);
  v("first", c.first, OnResume::model, "the first of these, counted from 0", legal::size_or_none);
  v("layers", c.layers, OnResume::model, "which layers have experts (empty: by `every`)", legal::fraction);
  v("ffn_hidden", c.ffn_hidden, OnResume::model, "inner width of an expert (0: as the MLP's)",
    legal::size_or_none);
  v("shared_hidden", c.shared_hidden, OnResume::model,
    "inner width of what computes every token beside the chosen experts (0: nothing does)",
    legal::size_or_none);
  v("shared_gate", c.shared_gate, OnResume::model, "multiply that by the sigmoid of a gate");
  v("residual", c.residual, OnResume::model,
    "put an MLP as wide as an expert beside the chosen ones, and weigh the two by the softmax of a gate");
  v("latent", c.latent, OnResume::model, "channels that experts work on (0: the model's)",
    legal::size_or_none);
  v("weigh_input", c.weigh_input, OnResume::model,
    "multiply what experts read by their weights, instead of what they give, as Llama 4 does");
  v.group("router", c.router);
}

struct ModelConfig;
/// Fills in what follows, and refuses what no layer can do.
void complete_experts(ModelConfig& model);

}  // namespace weft
