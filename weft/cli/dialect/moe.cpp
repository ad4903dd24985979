// Megatron's flags: mixtures of experts.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group moe() {
  return {
      "Mixtures of experts",
      {
          pick("num-experts", Arity::one, {{.word = "0"}, {.word = "", .refusal = "mixtures of experts"}}),
          cannot("moe-router-load-balancing-type", Arity::some, "mixtures of experts"),
          cannot("moe-router-topk", Arity::one, "mixtures of experts"),
          cannot("moe-grouped-gemm", Arity::none, "mixtures of experts"),
          cannot("moe-token-dispatcher-type", Arity::one, "mixtures of experts"),
          cannot("moe-aux-loss-coeff", Arity::some, "mixtures of experts"),
          cannot("moe-ffn-hidden-size", Arity::one, "mixtures of experts"),
          cannot("moe-router-dtype", Arity::one, "mixtures of experts"),
          cannot("moe-shared-expert-intermediate-size", Arity::one, "mixtures of experts"),
          cannot("moe-router-score-function", Arity::one, "mixtures of experts"),
          cannot("moe-router-topk-scaling-factor", Arity::one, "mixtures of experts"),
          cannot("moe-router-enable-expert-bias", Arity::none, "mixtures of experts"),
          cannot("moe-permute-fusion", Arity::none, "mixtures of experts"),
          cannot("moe-layer-freq", Arity::one, "mixtures of experts"),
          cannot("moe-router-pre-softmax", Arity::none, "mixtures of experts"),
          cannot("moe-router-group-topk", Arity::one, "mixtures of experts"),
          cannot("moe-router-num-groups", Arity::one, "mixtures of experts"),
          cannot("moe-router-bias-update-rate", Arity::one, "mixtures of experts"),
          cannot("moe-z-loss-coeff", Arity::one, "mixtures of experts"),
          cannot("use-fused-weighted-squared-relu", Arity::none, "mixtures of experts"),
          cannot("moe-flex-dispatcher-backend", Arity::one, "mixtures of experts"),
          cannot("moe-pad-experts-for-cuda-graph-inference", Arity::none, "mixtures of experts"),
          cannot("moe-shared-expert-gate", Arity::none, "mixtures of experts"),
          cannot("moe-token-drop-policy", Arity::one, "mixtures of experts"),
          cannot("moe-expert-capacity-factor", Arity::one, "mixtures of experts"),
          cannot("moe-pad-expert-input-to-capacity", Arity::none, "mixtures of experts"),
          cannot("moe-latent-size", Arity::one, "mixtures of experts"),
          cannot("moe-layer-recompute", Arity::none, "mixtures of experts"),
          cannot("moe-shared-expert-overlap", Arity::none, "mixtures of experts"),
          cannot("moe-enable-routing-replay", Arity::none, "mixtures of experts"),
          cannot("moe-router-fusion", Arity::none, "mixtures of experts"),
          cannot("moe-hybridep-num-sms", Arity::one, "mixtures of experts"),
          cannot("moe-router-padding-for-quantization", Arity::none, "mixtures of experts"),
          cannot("moe-flex-dispatcher-num-sms", Arity::one, "mixtures of experts"),
          cannot("moe-per-layer-logging", Arity::none, "mixtures of experts"),
          cannot("moe-router-force-load-balancing", Arity::none, "mixtures of experts"),
          pick("expert-model-parallel-size", Arity::one,
               {{.word = "1"}, {.word = "", .refusal = "mixtures of experts"}}),
          no_effect("expert-tensor-parallel-size", Arity::one,
                    "it cuts experts; --num-experts is refused by itself"),
          cannot("expert-tensor-parallel-num-weight-shards", Arity::one, "mixtures of experts"),
          cannot("overlap-moe-expert-parallel-comm", Arity::none, "mixtures of experts"),
          cannot("delay-wgrad-compute", Arity::none, "mixtures of experts"),
      }};
}

}  // namespace weft::cli::dialect
