// Megatron's flags: how a token knows where it stands.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group positions() {
  return {
      "Positions",
      {
          value("max-position-embeddings", "model.max_positions"),
          pick("position-embedding-type", Arity::one,
               {{.word = "learned_absolute", .path = "model.positions", .value = "learned"},
                {.word = "rope", .path = "model.positions", .value = "rotary"},
                {.word = "yarn", .path = "model.positions", .value = "rotary"},
                {.word = "yarn", .path = "model.rotary.scaling", .value = "yarn"},
                {.word = "none", .path = "model.positions", .value = "none"},
                {.word = "mrope", .refusal = "positions of images and video"},
                {.word = "relative", .path = "model.positions", .value = "relative"},
                {.word = "alibi", .path = "model.positions", .value = "alibi"}}),
          value("alibi-power", "model.alibi.power"),
          on("alibi-scaled", {{.path = "model.alibi.scaled", .value = "true"}},
             "alibi: slopes are multiplied as scores are, as in Falcon"),
          value("relative-attention-num-buckets", "model.relative.buckets"),
          value("relative-attention-max-distance", "model.relative.farthest"),
          on("use-rotary-position-embeddings", {{.path = "model.positions", .value = "rotary"}},
             "the old spelling of --position-embedding-type rope"),
          parsed("no-position-embedding", Arity::none, "model.positions", no_learned_positions,
                 "the old spelling of no learned positions; others stay"),
          value("rotary-base", "model.rotary.base"),
          value("rotary-window-base", "model.rotary.window_base"),
          value("rotary-percent", "model.rotary.percent"),
          on("rotary-interleaved", {{.path = "model.rotary.interleaved", .value = "true"}}),
          parsed("rotary-seq-len-interpolation-factor", Arity::one, "model.rotary.factor", linear_scaling),
          parsed("use-rope-scaling", Arity::none, "model.rotary.scaling", llama3_scaling,
                 "stretch angles as Llama 3 does"),
          value("rope-scaling-factor", "model.rotary.factor"),
          value("rotary-scaling-factor", "model.rotary.factor"),
          value("yarn-rotary-scaling-factor", "model.rotary.factor"),
          value("yarn-original-max-position-embeddings", "model.rotary.original_positions"),
          value("yarn-beta-fast", "model.rotary.beta_fast"),
          value("yarn-beta-slow", "model.rotary.beta_slow"),
          on("no-yarn-correction-range-round-to-int",
             {{.path = "model.rotary.whole_channels", .value = "false"}},
             "blend yarn's two forms between any places, as gpt-oss does, not from a whole channel to "
             "another"),
          value("mscale", "model.rotary.mscale"),
          value("mscale-all-dim", "model.rotary.mscale_all"),
          pick("rope-type", Arity::one,
               {{.word = "rope", .path = "model.positions", .value = "rotary"},
                {.word = "rope", .path = "model.rotary.scaling", .value = "none"},
                {.word = "yarn", .path = "model.positions", .value = "rotary"},
                {.word = "yarn", .path = "model.rotary.scaling", .value = "yarn"},
                {.word = "longrope", .path = "model.positions", .value = "rotary"},
                {.word = "longrope", .path = "model.rotary.scaling", .value = "longrope"}}),
          list("longrope-short-factors", Arity::some, "model.rotary.short_factors"),
          list("longrope-long-factors", Arity::some, "model.rotary.long_factors"),
          value("longrope-original-max-position-embeddings", "model.rotary.original_positions"),
          parsed("no-rope-freq", Arity::one, "model.rotary.skip_every", unturned_layers,
                 "every n-th layer has no rotary positions, or a list of 0 and 1"),
          value("rope-low-freq-factor", "model.rotary.low"),
          value("rope-high-freq-factor", "model.rotary.high"),
      }};
}

}  // namespace weft::cli::dialect
