// Megatron's flags: models that weft does not build yet.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group model_refused() {
  return {"Models that weft does not build yet",
          {
              cannot("hybrid-layer-pattern", Arity::one, "layers of several kinds"),
              cannot("hybrid-override-pattern", Arity::one, "layers of several kinds"),
              cannot("is-hybrid-model", Arity::none, "layers of several kinds"),
              // The layers that its BERT and T5 take by this word are the only ones here.
              pick("spec", Arity::any,
                   {{.word = "local"}, {.word = "", .refusal = "layers given as Python code"}}),
              cannot("mamba-num-heads", Arity::one, "state-space layers"),
              cannot("mamba-head-dim", Arity::one, "state-space layers"),
              cannot("mamba-state-dim", Arity::one, "state-space layers"),
              cannot("mamba-num-groups", Arity::one, "state-space layers"),
              cannot("experimental-attention-variant", Arity::one, "linear and sparse attention"),
              cannot("linear-conv-kernel-dim", Arity::one, "linear attention"),
              cannot("linear-attention-freq", Arity::one, "linear attention"),
              cannot("linear-key-head-dim", Arity::one, "linear attention"),
              cannot("linear-num-key-heads", Arity::one, "linear attention"),
              cannot("linear-num-value-heads", Arity::one, "linear attention"),
              cannot("linear-value-head-dim", Arity::one, "linear attention"),
              cannot("attention-output-gate", Arity::none, "a gate on attention's output"),
              cannot("activation-func-clamp-value", Arity::one, "clamped gates"),
              cannot("glu-linear-offset", Arity::one, "an offset in gates"),
              pick("softmax-type", Arity::one,
                   {{.word = "vanilla"},
                    {.word = "off-by-one", .refusal = "attention sinks"},
                    {.word = "learnable", .refusal = "attention sinks"}}),
              cannot("no-yarn-correction-range-round-to-int", Arity::none, "unrounded correction ranges"),
              value("vocab-extra-ids", "data.tokenizer.extra_ids"),
              cannot("enable-gpt-oss", Arity::none, "a preset of another tool"),
              cannot("export-te-mcore-model", Arity::none, "conversion by ModelOpt"),
              cannot("export-model-type", Arity::one, "conversion by ModelOpt"),
              cannot("export-force-local-attention", Arity::none, "conversion by ModelOpt"),
              cannot("export-kd-teacher-load", Arity::one, "distillation"),
              cannot("export-kd-cfg", Arity::one, "distillation"),
              cannot("export-default-te-spec", Arity::none, "conversion by ModelOpt"),
              cannot("export-moe-apply-probs-on-input", Arity::none, "conversion by ModelOpt"),
              cannot("fp32-residual-connection", Arity::none, "a residual stream in f32"),
              cannot("fp16-lm-cross-entropy", Arity::none, "cross entropy in f16"),
              cannot("dsa-indexer-head-dim", Arity::one, "sparse attention"),
              cannot("dsa-indexer-loss-coeff", Arity::one, "sparse attention"),
              cannot("dsa-indexer-n-heads", Arity::one, "sparse attention"),
              cannot("dsa-indexer-topk", Arity::one, "sparse attention"),
          }};
}

}  // namespace weft::cli::dialect
