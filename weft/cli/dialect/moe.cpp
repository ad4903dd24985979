// Megatron's flags: mixtures of experts.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

namespace {

constexpr std::string_view travels = "a token's rows travel to the ranks of its experts, and to no others";

}  // namespace

Group moe() {
  return {
      "Mixtures of experts",
      {
          parsed(
              "num-experts", Arity::some, "model.experts.count", expert_count,
              "experts of a layer (0: an MLP instead); a number for each layer of experts must be the same"),
          parsed("moe-layer-freq", Arity::one, "model.experts.every", expert_layers,
                 "every n-th layer has experts, the first among them, or a list of 0 and 1"),
          value("moe-ffn-hidden-size", "model.experts.ffn_hidden"),
          value("moe-shared-expert-intermediate-size", "model.experts.shared_hidden"),
          on("moe-shared-expert-gate", {{.path = "model.experts.shared_gate", .value = "true"}}),
          value("moe-latent-size", "model.experts.latent"),
          value("moe-router-topk", "model.experts.router.chosen"),
          value("moe-router-score-function", "model.experts.router.score"),
          on("moe-router-pre-softmax", {{.path = "model.experts.router.softmax_first", .value = "true"}}),
          value("moe-router-num-groups", "model.experts.router.groups"),
          value("moe-router-group-topk", "model.experts.router.groups_kept"),
          value("moe-router-topk-scaling-factor", "model.experts.router.scaling"),
          on("moe-router-enable-expert-bias",
             {{.path = "model.experts.router.expert_bias", .value = "true"}}),
          value("moe-router-bias-update-rate", "model.experts.router.bias_rate"),
          list("moe-router-load-balancing-type", Arity::some, "model.experts.router.balancing"),
          list("moe-aux-loss-coeff", Arity::some, "model.experts.router.coefficients"),
          value("moe-z-loss-coeff", "model.experts.router.z_loss"),
          value("moe-expert-capacity-factor", "model.experts.router.capacity"),
          value("moe-token-drop-policy", "model.experts.router.drop"),
          on("moe-pad-expert-input-to-capacity", {{.path = "model.experts.router.filled", .value = "true"}}),
          pick("moe-router-dtype", Arity::one,
               {{.word = "fp32", .path = "model.experts.router.precision", .value = "f32"},
                {.word = "fp64", .path = "model.experts.router.precision", .value = "f64"}}),
          no_effect("moe-grouped-gemm", Arity::none, "products of experts are grouped"),
          no_effect("moe-permute-fusion", Arity::none, "tokens are moved once"),
          no_effect("moe-router-fusion", Arity::none, "a router's choice is one pass"),
          no_effect("use-fused-weighted-squared-relu", Arity::none, "weights are multiplied in one pass"),
          pick("moe-token-dispatcher-type", Arity::one,
               {{.word = "alltoall"},
                {.word = "allgather"},
                {.word = "flex"},
                {.word = "alltoall_seq", .refusal = "a dispatcher of old"}}),
          no_effect("moe-flex-dispatcher-backend", Arity::one, travels),
          no_effect("moe-hybridep-num-sms", Arity::one, travels),
          no_effect("moe-flex-dispatcher-num-sms", Arity::one, travels),
          no_effect("moe-enable-deepep", Arity::none, travels),
          no_effect("moe-deepep-num-sms", Arity::one, travels),
          value("expert-model-parallel-size", "parallel.ep"),
          value("expert-tensor-parallel-size", "parallel.etp"),
          no_effect("moe-shared-expert-overlap", Arity::none,
                    "rows are always on their way while the shared expert computes"),
          on("overlap-moe-expert-parallel-comm", {{.path = "parallel.overlap_experts", .value = "true"}}),
          on("delay-wgrad-compute", {{.path = "parallel.delay_weight_grads", .value = "true"}}),
          on("moe-layer-recompute",
             {{.path = "model.recompute.what", .value = "selective"},
              {.path = "model.recompute.modules", .value = "experts"}},
             "recompute layers of experts, routers among them"),
          cannot("moe-enable-routing-replay", Arity::none, "replaying choices of experts"),
          cannot("moe-pad-experts-for-cuda-graph-inference", Arity::none, "graphs of a GPU's work"),
          no_effect("moe-router-padding-for-quantization", Arity::none,
                    "products of eight bits round an expert's rows up themselves"),
          on("moe-per-layer-logging", {{.path = "log.experts_by_layer", .value = "true"}}),
          on("moe-router-force-load-balancing",
             {{.path = "model.experts.router.by_chance", .value = "true"}}),
          cannot("expert-tensor-parallel-num-weight-shards", Arity::one, "weights cut once more"),
          value("moe-input-jitter-eps", "model.experts.router.jitter"),
          on("moe-use-upcycling", {{.path = "checkpoint.upcycle", .value = "true"}}),
          pick("moe-upcycling-granularity", Arity::one,
               {{.word = "1"}, {.word = "", .refusal = "experts that are parts of an MLP"}}),
          cannot("moe-apply-probs-on-input", Arity::none, "weights before the experts"),
          cannot("moe-expert-rank-capacity-factor", Arity::one, "room of a rank for all its experts"),
          cannot("moe-router-force-biased", Arity::one, "random choices of experts"),
          no_effect("moe-use-legacy-grouped-gemm", Arity::none, "products of experts are grouped"),
          // Megatron-DeepSpeed's spellings.
          value("topk", "model.experts.router.chosen"),
          value("moe-train-capacity-factor", "model.experts.router.capacity"),
          value("moe-loss-coeff", "model.experts.router.coefficients"),
          value("moe-expert-parallel-size", "parallel.ep"),
          parsed("expert-interval", Arity::one, "model.experts.every", expert_interval,
                 "every n-th layer has experts, the n-th the first of them"),
          pick("mlp-type", Arity::one,
               {{.word = "standard"},
                {.word = "residual", .path = "model.experts.residual", .value = "true"}}),
          value("moe-eval-capacity-factor", "model.experts.router.capacity_evaluating"),
          value("moe-min-capacity", "model.experts.router.least_rows"),
          parsed("disable-moe-token-dropping", Arity::none, "model.experts.router.capacity", all_tokens,
                 "no token is dropped, whatever capacity is given"),
          no_effect("create-moe-param-group", Arity::none, "experts are not treated apart where it shows"),
          no_effect(
              "enable-expert-tensor-parallelism", Arity::none,
              "ranks share experts as they share other layers, or as --expert-tensor-parallel-size says"),
          no_effect("use-tutel", Arity::none, "there is one implementation"),
      }};
}

}  // namespace weft::cli::dialect
