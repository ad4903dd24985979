// Which experts compute which tokens, with what weight, and what keeps experts busy alike.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "weft/nn/layer_drop.h"
#include "weft/nn/linear.h"
#include "weft/nn/router_noise.h"
#include "weft/tensor/routing.h"

namespace weft {

/// Over which tokens a balancing loss is a mean.
enum class BalancedOver : std::uint8_t { microbatch, sequence, step };

struct BalanceLoss {
  BalancedOver over = BalancedOver::microbatch;
  float coefficient = 0;
  int loss_number = 0;  // among the family's
};

/// What a router has seen of a step: numbers of this rank.
struct RouterCounts {
  Tensor chosen;     // f32 [e]: rows of each expert, after dropping
  double asked = 0;  // choices before it
  Tensor told;       // f64 [losses, exact_digits]: sums of the terms of each balancing loss, empty without
};

/// Who else holds tokens. Tensor-parallel ranks have different ones here, whatever they have elsewhere.
struct TokenRanks {
  TensorParallel parts;               // of a sequence that is cut over tensor-parallel ranks
  Communicator* context = nullptr;    // of sequences that are cut over context-parallel ranks
  Communicator* sequences = nullptr;  // all who hold parts of the same sequences
  Communicator* batch = nullptr;      // and those who hold others
  SumRules sums = {};

  int in_a_sequence() const { return sequences ? sequences->size() : 1; }
};

/// Scores of experts for each token. The weight matrix is whole on every rank; a rank that sees some of a
/// sequence's tokens adds their share of its gradient.
class Router {
 public:
  struct Options {
    RouteArgs route;
    std::int64_t chosen = 2;  // experts a token
    std::vector<BalanceLoss> losses;
    float z_loss = 0;
    int z_loss_number = 0;
    float share = 1;                        // of a layer in the losses that are told
    int rounds = 1;                         // that a pass goes: losses are means over them
    std::optional<double> capacity_factor;  // of what an expert takes, times even shares
    std::optional<double> capacity_evaluating;
    int least_rows = 0;
    bool filled = false;  // experts get as many rows as they have room for, some of nobody
    DropPolicy policy = DropPolicy::probs;
    float jitter = 0;
    bool by_chance = false;
    Dtype precision = Dtype::f32;  // or f64: of logits, scores and losses, and of their gradients
    bool sinkhorn = false;
    double bias_rate = 0;
    int layer = 0;
    LayerDrop drop = {};  // of its layer: losses are weighed as what the layer adds is
    LayerPlace place = {};

    const std::optional<double>& room(bool training) const {
      return training || !capacity_evaluating ? capacity_factor : capacity_evaluating;
    }
  };
  Router(Parameter weight, std::optional<Parameter> bias, std::optional<Parameter> expert_bias,
         const Options& options, const TokenRanks& ranks, Device& device);

  struct Out {
    Tensor weights;         // f32 [t, k]
    Tensor experts;         // i32 [t, k], -1: dropped
    std::int64_t rows = 0;  // that are not, at most
    std::int64_t room = 0;  // rows that each expert gets of this rank, whoever chose it; 0: those that are
  };
  /// x [s, b, h], the tokens of this rank
  Out forward(Pass& pass, const Tensor& x);
  /// dx f32 [t, h] += the way of dweights f32 [t, k] back to x
  void backward(Pass& pass, const Tensor& dx, const Tensor& dweights, const Tensor& x);

  // ---- the step
  void begin_step();
  const RouterCounts& counts() const { return counts_; }
  /// Moves what is added to scores by the counts of all ranks, f32 [e].
  void follow(const Tensor& counts);
  bool follows() const { return expert_bias_.has_value(); }
  std::int64_t experts() const { return weight_.shape[0]; }
  std::int64_t chosen() const { return options_.chosen; }
  int layer() const { return options_.layer; }

  void each_parameter(const VisitParameter& visit);

 private:
  struct Saved {
    Tensor logits, dlogits;  // [t, e]; the latter of the balancing losses, empty without
    Routed routed;
  };
  bool in_doubles() const { return options_.precision == Dtype::f64; }
  Tensor logits(const Tensor& x) const;
  void add_input_grad(const Tensor& dx, const Tensor& dlogits) const;
  bool jitters(const Pass& pass) const { return options_.jitter != 0 && pass.training(); }
  Tensor jitter(const Pass& pass, const Tensor& x) const;
  Tensor chance(const Pass& pass, const Tensor& x) const;
  Tensor noise(const Pass& pass, const Tensor& x, std::int64_t width, Noise kind) const;
  Routed choose(const Pass& pass, const Tensor& scored, const Tensor& x) const;
  Tensor whole(const Tensor& rows, std::int64_t samples) const;
  Tensor here(const Tensor& all, const Tensor& x) const;
  Out kept(const Routed& routed, const Tensor& x, double factor) const;
  std::int64_t room_here(std::int64_t most, std::int64_t tokens) const;
  Tensor balance(Pass& pass, const Tensor& logits, const Tensor& x);
  Tensor factors(Pass& pass, const BalanceLoss& loss, const Tensor& plain, std::int64_t samples);
  void tell(Pass& pass, int which, const Tensor& terms, std::int64_t samples) const;
  void count(const Tensor& experts);
  void owe(Debts& debts, const Tensor& dlogits, const Tensor& x);

  Parameter weight_;
  std::optional<Parameter> bias_, expert_bias_;
  Options options_;
  TokenRanks ranks_;
  RouterCounts counts_;
  Tensor so_far_;  // f32 [e]: counts of the step's microbatches, where a loss looks at them
  int passes_so_far_ = 0;
};

using VisitRouter = std::function<void(Router&)>;

}  // namespace weft
