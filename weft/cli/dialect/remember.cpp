// Megatron's flags: layers that remember where others attend.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group remember() {
  return {"Linear attention",
          {
              pick("experimental-attention-variant", Arity::one,
                   {{.word = "gdn", .path = "model.delta.on", .value = "true"},
                    {.word = "gated_delta_net", .path = "model.delta.on", .value = "true"},
                    {.word = "gdn2", .refusal = "the second form of the gated delta rule"},
                    {.word = "dsa", .refusal = "sparse attention"}}),
              parsed("linear-attention-freq", Arity::one, "model.delta.attends_every", delta_layers,
                     "every n-th layer attends, others remember, or a list of 0 and 1: 1 remembers"),
              value("linear-conv-kernel-dim", "model.delta.taps"),
              value("linear-key-head-dim", "model.delta.key_channels"),
              value("linear-value-head-dim", "model.delta.value_channels"),
              value("linear-num-key-heads", "model.delta.key_heads"),
              value("linear-num-value-heads", "model.delta.value_heads"),
              on("attention-output-gate", {{.path = "model.attention_gate", .value = "true"}},
                 "multiply what heads of attention give by the sigmoid of gates that are made of the token"),
          }};
}

}  // namespace weft::cli::dialect
