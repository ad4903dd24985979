// Megatron's flags: models that weft does not build yet.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group model_refused() {
  return {
      "Models that weft does not build yet",
      {
          // The layers that its BERT and T5 take by the first word, and its models of layers of one thing
          // each by the others, are the only ones here.
          pick("spec", Arity::any,
               {{.word = "local"},
                {.word = "megatron.core.models.hybrid.hybrid_layer_specs"},
                {.word = "hybrid_stack_spec"},
                {.word = "megatron.core.models.mamba.mamba_layer_specs"},
                {.word = "mamba_stack_spec"},
                {.word = "", .refusal = "layers given as Python code"}}),
          value("vocab-extra-ids", "data.tokenizer.extra_ids"),
          no_effect("enable-gpt-oss", Arity::none,
                    "in Megatron it is for models that ModelOpt has converted; gpt-oss' positions are "
                    "--position-embedding-type yarn and its --yarn-… flags"),
          cannot("export-te-mcore-model", Arity::none, "conversion by ModelOpt"),
          cannot("export-model-type", Arity::one, "conversion by ModelOpt"),
          no_effect("export-force-local-attention", Arity::none,
                    "in Megatron it is for models that ModelOpt has converted"),
          cannot("export-kd-teacher-load", Arity::one, "distillation"),
          cannot("export-kd-cfg", Arity::one, "distillation"),
          cannot("export-default-te-spec", Arity::none, "conversion by ModelOpt"),
          cannot("export-moe-apply-probs-on-input", Arity::none, "conversion by ModelOpt"),
          cannot("fp16-lm-cross-entropy", Arity::none, "cross entropy in f16"),
          cannot("dsa-indexer-head-dim", Arity::one, "sparse attention"),
          cannot("dsa-indexer-loss-coeff", Arity::one, "sparse attention"),
          cannot("dsa-indexer-n-heads", Arity::one, "sparse attention"),
          cannot("dsa-indexer-topk", Arity::one, "sparse attention"),
          cannot("heterogeneous-layers-config-path", Arity::one, "layers of several kinds"),
          cannot("heterogeneous-layers-config-encoded-json", Arity::one, "layers of several kinds"),
          cannot("mtp-detach-heads", Arity::none,
                 "further tokens that the model does not learn from, clipped by a norm of their own"),
          cannot("mtp-hsm", Arity::none, "further tokens from mixed states"),
          cannot("dsa-indexer-topk-freq", Arity::one, "sparse attention"),
          cannot("dsa-indexer-skip-topk-offset", Arity::one, "sparse attention"),
          cannot("dsa-kernel-backend", Arity::one, "sparse attention"),
          cannot("dsa-indexer-k-norm-epsilon", Arity::one, "sparse attention"),
          cannot("dsa-indexer-use-sparse-loss", Arity::none, "sparse attention"),
          cannot("dsa-indexer-rope-interleaved", Arity::none, "sparse attention"),
          cannot("no-dsa-indexer-rotate-activation", Arity::none, "sparse attention"),
          cannot("disable-dsa-indexer-rotate-activation", Arity::none, "sparse attention"),
          cannot("no-dsa-indexer-scoring-relu", Arity::none, "sparse attention"),
          cannot("disable-dsa-indexer-scoring-relu", Arity::none, "sparse attention"),
          cannot("dsa-indexer-k-norm-fp32", Arity::none, "sparse attention"),
          cannot("enable-mhc-connections", Arity::none, "several residual streams"),
          cannot("mhc-num-residual-streams", Arity::one, "several residual streams"),
          cannot("mhc-sinkhorn-iterations", Arity::one, "several residual streams"),
          cannot("mhc-init-gating-factor", Arity::one, "several residual streams"),
          cannot("mhc-recompute-layer-num", Arity::one, "several residual streams"),
          cannot("mrope-section", Arity::some, "positions of images and video"),
          cannot("gdp-num-householder", Arity::one, "linear attention"),
          cannot("gdp-cutedsl-kernel", Arity::none, "linear attention"),
          cannot("gdp-num-chunk-states-to-recompute", Arity::one, "linear attention"),
          no_effect("yarn-correction-range-round-to-int", Arity::none, "the ends of the range are rounded"),
      }};
}

}  // namespace weft::cli::dialect
