// Megatron's flags: what is computed again, or kept elsewhere.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group recompute() {
  return {
      "Recompute",
      {
          pick("recompute-granularity", Arity::one,
               {{.word = "full", .path = "model.recompute.what", .value = "full"},
                {.word = "selective", .path = "model.recompute.what", .value = "selective"}}),
          on("recompute-activations", {{.path = "model.recompute.what", .value = "selective"}},
             "the short spelling of --recompute-granularity selective"),
          pick("recompute-method", Arity::one,
               {{.word = "uniform", .path = "model.recompute.method", .value = "uniform"},
                {.word = "block", .path = "model.recompute.method", .value = "block"}}),
          value("recompute-num-layers", "model.recompute.layers"),
          parsed("recompute-modules", Arity::some, "model.recompute.modules", recompute_modules),
          pick("activations-checkpoint-method", Arity::one,
               {{.word = "uniform", .path = "model.recompute.what", .value = "full"},
                {.word = "uniform", .path = "model.recompute.method", .value = "uniform"},
                {.word = "block", .path = "model.recompute.what", .value = "full"},
                {.word = "block", .path = "model.recompute.method", .value = "block"}}),
          on("checkpoint-activations",
             {{.path = "model.recompute.what", .value = "full"},
              {.path = "model.recompute.method", .value = "uniform"}},
             "recompute every layer"),
          on("distribute-saved-activations", {{.path = "model.recompute.cut", .value = "true"}}),
          cannot("fine-grained-activation-offloading", Arity::none, "activations on another device"),
          cannot("offload-modules", Arity::some, "activations on another device"),
          no_effect("mlp-chunks-for-training", Arity::one,
                    "--recompute-modules mlp needs less memory, and the plan says how much"),
          cannot("cpu-offloading-num-layers", Arity::one, "activations on another device"),
          cannot("cpu-offloading-retain-pinned-cpu-buffers", Arity::none, "activations on another device"),
          cannot("min-offloaded-tensor-size", Arity::one, "activations on another device"),
          cannot("delay-offload-until-cuda-graph", Arity::none, "activations on another device"),
          cannot("delta-offload-bytes-across-pp-ranks", Arity::one, "activations on another device"),
          cannot("activation-offload-fraction", Arity::one, "activations on another device"),
          cannot("fine-grained-offloading-max-inflight-offloads", Arity::one,
                 "activations on another device"),
      }};
}

}  // namespace weft::cli::dialect
