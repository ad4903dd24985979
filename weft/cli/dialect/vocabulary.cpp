// Megatron's flags: how many words a model has, and what its weights begin as.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group vocabulary() {
  return {
      "Vocabulary and initial weights",
      {
          value("vocab-size", "model.vocabulary"),
          value("make-vocab-size-divisible-by", "model.vocabulary_unit"),
          value("padded-vocab-size", "model.padded_vocabulary"),
          on("no-pad-vocab-size", {{.path = "model.vocabulary_unit", .value = "1"}}, "store no padding rows"),
          value("init-method-std", "model.init.std"),
          value("embedding-init-method-std", "model.init.embedding_std"),
          on("init-method-xavier-uniform", {{.path = "model.init.method", .value = "xavier_uniform"}}),
          on("no-scaled-init-method", {{.path = "model.init.scale_output_layers", .value = "false"}},
             "initial weights of output layers as of all others"),
          on("use-mup", {{.path = "model.mup.on", .value = "true"}},
             "maximal update parametrization: rates and initial weights follow the width of the model"),
          value("mup-base-hidden-size", "model.mup.base_hidden"),
          no_effect("mup-width-mult", Arity::one, "--hidden-size and --mup-base-hidden-size give the width"),
          value("mup-embedding-mult", "model.mup.embedding_multiplier"),
          value("mup-output-mult", "model.mup.output_multiplier"),
          value("mup-base-head-dim", "model.mup.base_channels"),
          value("mup-attn-scale-power", "model.mup.attention_power"),
      }};
}

}  // namespace weft::cli::dialect
