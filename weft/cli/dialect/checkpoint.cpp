// Megatron's flags: checkpoints.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group checkpoint() {
  return {
      "Checkpoints",
      {
          value("save", "checkpoint.save"),
          value("load", "checkpoint.load"),
          value("save-interval", "checkpoint.interval"),
          value("save-retain-interval", "checkpoint.retain_interval"),
          value("ckpt-step", "checkpoint.step"),
          value("pretrained-checkpoint", "checkpoint.pretrained"),
          on("no-load-optim", {{.path = "checkpoint.load_optimizer", .value = "false"}},
             "do not load optimizer states"),
          on("no-load-rng", {{.path = "checkpoint.load_random", .value = "false"}}, "do not load the seed"),
          on("no-save-optim", {{.path = "checkpoint.save_optimizer", .value = "false"}},
             "do not save optimizer states"),
          on("no-save-rng", {{.path = "checkpoint.save_random", .value = "false"}}, "do not save the seed"),
          on("use-checkpoint-args", {{.path = "checkpoint.use_args", .value = "true"}}),
          on("no-use-tokenizer-model-from-checkpoint-args",
             {{.path = "checkpoint.use_tokenizer", .value = "false"}}, "but not the tokenizer's"),
          on("exit-on-missing-checkpoint", {{.path = "checkpoint.allow_fresh_start", .value = "false"}},
             "nothing to load is an error, as it is anyway"),
          on("allow-fresh-start", {{.path = "checkpoint.allow_fresh_start", .value = "true"}}),
          value("save-keep-last", "checkpoint.keep_last"),
          value("save-keep-best", "checkpoint.keep_best"),
          on("verify-resume", {{.path = "checkpoint.verify", .value = "true"}}),
          on("async-save", {{.path = "checkpoint.in_background", .value = "true"}}),
          no_effect("ckpt-format", Arity::one,
                    "checkpoints have weft's form; weft checkpoint convert writes others"),
          no_effect("auto-detect-ckpt-format", Arity::none, "what lies in a directory is always detected"),
          no_effect("use-dist-ckpt", Arity::none, "every checkpoint loads under every layout"),
          no_effect("dist-ckpt-strictness", Arity::one, "every tensor must be accounted for"),
          no_effect("dist-ckpt-optim-fully-reshardable", Arity::none,
                    "every checkpoint loads under every layout"),
          no_effect("ckpt-fully-parallel-load", Arity::none, "loading is spread over all ranks"),
          no_effect("ckpt-fully-parallel-save", Arity::none, "saving is spread over all ranks"),
          no_effect("no-ckpt-fully-parallel-save", Arity::none, "saving is spread over all ranks"),
          no_effect("ckpt-fully-parallel-load-per-rank-objects", Arity::none,
                    "loading is spread over all ranks"),
          no_effect("ckpt-assume-constant-structure", Arity::none, "the plan of a save is kept"),
          no_effect("ckpt-drop-redundant-extra-state", Arity::none, "there is no extra state"),
          no_effect("no-ckpt-load-validate-sharding-integrity", Arity::none,
                    "what is loaded is always checked"),
          no_effect("use-persistent-ckpt-worker", Arity::none, "one thread writes"),
          no_effect("async-strategy", Arity::one, "one thread writes"),
          no_effect("async-ckpt-use-cpu-shm", Arity::none, "one thread writes"),
          no_effect("verify-integrity", Arity::none, "every block always carries its checksum"),
          cannot("checkpoint", Arity::one, "a flag of Megatron's tools"),
      }};
}

}  // namespace weft::cli::dialect
