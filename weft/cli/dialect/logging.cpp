// Megatron's flags: what a run tells.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group logging() {
  return {
      "What a run tells",
      {
          value("log-interval", "log.interval"),
          on("log-throughput", {{.path = "log.throughput", .value = "true"}}),
          on("log-params-norm", {{.path = "log.params_norm", .value = "true"}}),
          on("log-num-zeros-in-grad", {{.path = "log.zeros", .value = "true"}}),
          on("log-progress", {{.path = "log.progress", .value = "true"}}),
          value("log-memory-interval", "log.memory_interval"),
          value("log-jsonl", "log.jsonl"),
          value("tensorboard-dir", "log.tensorboard"),
          value("tensorboard-log-interval", "log.tensorboard_interval"),
          value("tensorboard-queue-size", "log.tensorboard_queue"),
          on("log-timers-to-tensorboard", {{.path = "log.tensorboard_timers", .value = "true"}}),
          on("log-memory-to-tensorboard", {{.path = "log.tensorboard_memory", .value = "true"}}),
          on("log-validation-ppl-to-tensorboard", {{.path = "log.tensorboard_perplexity", .value = "true"}}),
          on("log-world-size-to-tensorboard", {{.path = "log.tensorboard_world_size", .value = "true"}}),
          on("no-log-learning-rate-to-tensorboard",
             {{.path = "log.tensorboard_learning_rate", .value = "false"}},
             "no learning rate to TensorBoard"),
          on("no-log-loss-scale-to-tensorboard", {{.path = "log.tensorboard_loss_scale", .value = "false"}},
             "no loss scale to TensorBoard"),
          on("log-learning-rate-to-tensorboard",
             {{.path = "log.tensorboard_learning_rate", .value = "true"}}),
          on("log-loss-scale-to-tensorboard", {{.path = "log.tensorboard_loss_scale", .value = "true"}}),
          no_effect("log-batch-size-to-tensorboard", Arity::none, "the batch size always goes there"),
          cannot("log-optimizer-states-to-tensorboard", Arity::none, "statistics of optimizer states"),
          value("timing-log-level", "log.timing_level"),
          value("timing-log-option", "log.timing_report"),
          no_effect("wandb-project", Arity::one,
                    "nothing leaves this machine; --log-jsonl and --tensorboard-dir write what W&B can sync"),
          no_effect("wandb-exp-name", Arity::one,
                    "nothing leaves this machine; --log-jsonl and --tensorboard-dir write what W&B can sync"),
          no_effect("wandb-save-dir", Arity::one,
                    "nothing leaves this machine; --log-jsonl and --tensorboard-dir write what W&B can sync"),
          no_effect("wandb-entity", Arity::one,
                    "nothing leaves this machine; --log-jsonl and --tensorboard-dir write what W&B can sync"),
          no_effect("logging-level", Arity::one, "progress and warnings are always said, once"),
          cannot("log-straggler", Arity::none, "ranking of slow ranks"),
          cannot("straggler-minmax-count", Arity::one, "ranking of slow ranks"),
          cannot("disable-straggler-on-startup", Arity::none, "ranking of slow ranks"),
          cannot("log-energy", Arity::none, "energy counters"),
          on("profile", {{.path = "profile.on", .value = "true"}}),
          value("profile-step-start", "profile.after"),
          value("profile-step-end", "profile.last"),
          list("profile-ranks", Arity::some, "profile.ranks"),
          cannot("record-memory-history", Arity::none, "a history of allocations"),
          cannot("tensorboard-logs-path", Arity::one, "a flag of Megatron's tools"),
      }};
}

}  // namespace weft::cli::dialect
