// Megatron's flags: length, batches, evaluation and stopping.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

Group loop() {
  return {
      "Length, batches, evaluation and stopping",
      {
          value("train-iters", "length.iterations"),
          value("train-samples", "length.samples"),
          value("train-tokens", "length.tokens"),
          value("micro-batch-size", "batch.micro"),
          value("global-batch-size", "batch.global"),
          list("rampup-batch-size", Arity::some, "batch.rampup",
               "first batch, increment and number of samples: the batch grows by the increment over the "
               "samples"),
          parsed("step-batch-size-schedule", Arity::some, "batch.schedule", batch_steps),
          on("decrease-batch-size-if-needed", {{.path = "batch.round_down", .value = "true"}}),
          on("calculate-per-token-loss", {{.path = "batch.per_token_loss", .value = "true"}}),
          value("eval-interval", "eval.interval"),
          value("eval-iters", "eval.iterations"),
          value("eval-global-batch-size", "eval.global"),
          value("eval-micro-batch-size", "eval.micro"),
          on("full-validation", {{.path = "eval.whole_set", .value = "true"}}),
          on("skip-train", {{.path = "eval.skip_train", .value = "true"}}),
          value("exit-interval", "exit.interval"),
          value("exit-duration-in-mins", "exit.minutes"),
          no_effect("exit-signal-handler", Arity::none,
                    "a run that is told to terminate always stops in order"),
          value("seed", "run.seed"),
          value("non-finite", "guard.non_finite"),
          on("no-check-for-nan-in-loss-and-grad", {{.path = "guard.non_finite", .value = "skip"}},
             "a step that is not finite is skipped and counted"),
          on("check-for-spiky-loss", {{.path = "guard.spiky_loss", .value = "true"}}),
          no_effect("check-for-large-grads", Arity::none,
                    "a step whose gradient is not finite is never applied"),
          list("iterations-to-skip", Arity::some, "guard.skip_iterations"),
          value("check-replicas", "guard.replica_check_interval"),
          value("rerun-check", "guard.rerun_interval"),
          value("check-weight-hash-across-dp-replicas-interval", "guard.replica_check_interval"),
          pick("rerun-mode", Arity::one,
               {{.word = "disabled", .path = "guard.faults", .value = "off"},
                {.word = "validate_results", .path = "guard.faults", .value = "rerun"},
                {.word = "report_stats", .refusal = "statistics of steps that are run again"}}),
          no_effect(
              "deterministic-mode", Arity::none,
              "the same command always gives the same bits; --exact makes them independent of the layout"),
          no_effect("manual-gc", Arity::none, "nothing is collected behind a step"),
          no_effect("manual-gc-interval", Arity::one, "nothing is collected behind a step"),
          no_effect("empty-unused-memory-level", Arity::one, "memory is pooled and its amount known"),
          no_effect("enable-experimental", Arity::none, "nothing here waits for a switch"),
          on("test-mode", {{.path = "guard.replica_check_interval", .value = "1"}},
             "compare all copies of weights after every step"),
          value("error-injection-rate", "guard.inject_every"),
          pick("error-injection-type", Arity::one,
               {{.word = "transient_error", .path = "guard.injected", .value = "passing"},
                {.word = "persistent_error", .path = "guard.injected", .value = "lasting"},
                {.word = "correct_result", .path = "guard.injected", .value = "lasting"}}),
          cannot("sft", Arity::none, "supervised fine-tuning"),
          cannot("sft-tokenizer-prompt-format", Arity::one, "supervised fine-tuning"),
          on("finetune", {{.path = "checkpoint.finetune", .value = "true"}}),
          cannot("inprocess-restart", Arity::none, "restarting inside a process"),
          gone("batch-size", "--micro-batch-size"),
          gone("warmup", "--lr-warmup-fraction"),
          gone("model-parallel-size", "--tensor-model-parallel-size"),
          gone("yaml-cfg", "--config"),
      }};
}

}  // namespace weft::cli::dialect
