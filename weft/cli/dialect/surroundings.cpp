// Megatron's flags: what stands around a run in a cluster.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

namespace {

constexpr std::string_view
    in_process = "restarting inside a process",
    broken = "machines that fail on purpose",
    stays = "nothing leaves this machine; --log-jsonl and --tensorboard-dir write what others can read",
    watched = "weft launch watches ranks, and starts them again",
    first_cause = "the first cause of a failure is what is told";

}  // namespace

Group surroundings() {
  return {
      "What stands around a run",
      {
          cannot("inprocess-restart", Arity::none, in_process),
          cannot("inprocess-max-iterations", Arity::one, in_process),
          cannot("inprocess-monitor-thread-interval", Arity::one, in_process),
          cannot("inprocess-monitor-process-interval", Arity::one, in_process),
          cannot("inprocess-progress-watchdog-interval", Arity::one, in_process),
          cannot("inprocess-heartbeat-interval", Arity::one, in_process),
          cannot("inprocess-soft-timeout", Arity::one, in_process),
          cannot("inprocess-hard-timeout", Arity::one, in_process),
          cannot("inprocess-heartbeat-timeout", Arity::one, in_process),
          cannot("inprocess-barrier-timeout", Arity::one, in_process),
          cannot("inprocess-completion-timeout", Arity::one, in_process),
          cannot("inprocess-last-call-wait", Arity::one, in_process),
          cannot("inprocess-termination-grace-time", Arity::one, in_process),
          cannot("inprocess-granularity", Arity::one, in_process),
          cannot("inprocess-active-world-size", Arity::one, in_process),
          cannot("inprocess-empty-cuda-cache", Arity::none, in_process),
          cannot("fault-injector-ranks", Arity::one, broken),
          cannot("fault-injector-num-ranks", Arity::one, broken),
          cannot("fault-injector-fault-types", Arity::one, broken),
          cannot("fault-injector-fault-probabilities", Arity::one, broken),
          cannot("fault-injector-fault-delay", Arity::one, broken),
          cannot("fault-injector-delay-start-iteration", Arity::one, broken),
          cannot("fault-injector-mtti-seconds", Arity::one, broken),
          cannot("fault-injector-offset-seconds", Arity::one, broken),
          cannot("fault-injector-seed", Arity::one, broken),
          no_effect("no-one-logger", Arity::none, stays),
          no_effect("one-logger-project", Arity::one, stays),
          no_effect("one-logger-run-name", Arity::one, stays),
          no_effect("one-logger-async", Arity::none, stays),
          no_effect("one-logger-entity", Arity::one, stays),
          no_effect("enable-one-logger", Arity::none, stays),
          no_effect("enable-onelogger", Arity::none, stays),
          no_effect("app-tag-run-name", Arity::one, stays),
          no_effect("app-tag-run-version", Arity::one, stays),
          no_effect("otel-enabled", Arity::none, stays),
          no_effect("otel-service-name", Arity::one, stays),
          no_effect("otel-span-groups", Arity::one, stays),
          no_effect("enable-ft-package", Arity::none, watched),
          no_effect("calc-ft-timeouts", Arity::none, watched),
          no_effect("ft-num-warmup-iters", Arity::one, watched),
          no_effect("flight-recorder-dump-path", Arity::one, first_cause),
          no_effect("flight-recorder-trace-buffer-size", Arity::one, first_cause),
          no_effect("no-flight-recorder-dump-on-timeout", Arity::none, first_cause),
          no_effect("disable-flight-recorder-dump-on-timeout", Arity::none, first_cause),
          no_effect("flight-recorder-include-stack-trace", Arity::none, first_cause),
          no_effect("no-flight-recorder-include-only-active", Arity::none, first_cause),
          no_effect("disable-flight-recorder-include-only-active", Arity::none, first_cause),
          no_effect("no-flight-recorder-extra-dump-on-exec", Arity::none, first_cause),
          no_effect("disable-flight-recorder-extra-dump-on-exec", Arity::none, first_cause),
          cannot("adlr-autoresume", Arity::none, "a cluster of NVIDIA's own: weft launch goes on by itself"),
          cannot("adlr-autoresume-interval", Arity::one,
                 "a cluster of NVIDIA's own: weft launch goes on by itself"),
          cannot("enable-msc", Arity::none, "object storage"),
          no_effect("disable-msc", Arity::none, "files are files"),
          cannot("logits-save-top-k", Arity::one, "distillation"),
          cannot("logits-save-top-p", Arity::one, "distillation"),
          cannot("logits-save-top-p-min-k", Arity::one, "distillation"),
          cannot("logits-save-dir", Arity::one, "distillation"),
          cannot("logits-save-dtype", Arity::one, "distillation"),
          cannot("logits-load-dir", Arity::one, "distillation"),
          cannot("logits-load-decode-threads", Arity::one, "distillation"),
          cannot("logits-load-prefetch-factor", Arity::one, "distillation"),
          cannot("logits-load-msc-prefetch-depth", Arity::one, "distillation"),
          cannot("logits-load-kd-loss-alpha", Arity::one, "distillation"),
          cannot("logits-load-ignore-errors", Arity::none, "distillation"),
      }};
}

}  // namespace weft::cli::dialect
