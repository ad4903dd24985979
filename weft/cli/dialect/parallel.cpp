// Megatron's flags: layout over ranks.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

namespace {

/// Of the types that could be named, the one that is here anyway.
Row only_f32(std::string_view flag, std::string_view other) {
  return pick(flag, Arity::one, {{.word = "fp32"}, {.word = "", .refusal = other}});
}

/// What gradients are kept in, or travel as.
Row f32_or_bf16(std::string_view flag, std::string_view path, std::string_view other) {
  return pick(
      flag, Arity::one,
      {{.word = "fp32"}, {.word = "bf16", .path = path, .value = "true"}, {.word = "", .refusal = other}});
}

Row where_to_compute() {
  Row row =
      parsed("device", Arity::one, "run.device", computes_on,
             "where to compute: on processors, or on the GPUs of a machine, which its ranks take in turn "
             "(cuda) or of which all take one (cuda:0, cuda:1, and so on)");
  row.effects.clear();
  for (const std::string_view word : {"cpu", "cpu:fast", "cpu:onednn", "cpu:reference", "cuda", "cuda:0"})
    row.effects.push_back({.word = word, .path = "run.device"});
  return row;
}

}  // namespace

Group parallel() {
  return {
      "Layout over ranks",
      {
          value("tensor-model-parallel-size", "parallel.tp"),
          value("pipeline-model-parallel-size", "parallel.pp"),
          value("context-parallel-size", "parallel.cp"),
          on("sequence-parallel", {{.path = "parallel.sequence", .value = "true"}}),
          on("use-tp-pp-dp-mapping", {{.path = "parallel.order", .value = "tp-cp-ep-pp-dp"}}),
          {.flag = "cp-comm-type",
           .arity = Arity::some,
           .effects = {{.word = "p2p", .path = "parallel.context", .value = "ring"},
                       {.word = "all_gather", .path = "parallel.context", .value = "gather"},
                       {.word = "a2a", .path = "parallel.context", .value = "heads"},
                       {.word = "a2a+p2p", .path = "parallel.context", .value = "two_levels"}},
           .text = "how ranks that share a sequence exchange keys and values: once, or a word a layer",
           .parse = context_forms},
          list("hierarchical-context-parallel-sizes", Arity::some, "parallel.context_levels"),
          value("pipeline-schedule", "parallel.schedule"),
          value("num-layers-per-virtual-pipeline-stage", "parallel.virtual_stage_layers"),
          value("num-virtual-stages-per-pipeline-rank", "parallel.virtual_stages"),
          value("microbatch-group-size-per-virtual-pipeline-stage", "parallel.microbatch_group"),
          value("pipeline-model-parallel-layout", "parallel.layout"),
          value("decoder-first-pipeline-num-layers", "parallel.first_stage_layers"),
          value("decoder-last-pipeline-num-layers", "parallel.last_stage_layers"),
          value("num-layers-in-first-pipeline-stage", "parallel.first_stage_layers"),
          value("num-layers-in-last-pipeline-stage", "parallel.last_stage_layers"),
          on("account-for-embedding-in-pipeline-split",
             {{.path = "parallel.count_embedding", .value = "true"}}),
          on("account-for-loss-in-pipeline-split", {{.path = "parallel.count_loss", .value = "true"}}),
          parsed("use-megatron-fsdp", Arity::none, "parallel.zero", megatron_fsdp,
                 "cut optimizer states, gradients and weights over data-parallel ranks, or what "
                 "--data-parallel-sharding-strategy says"),
          parsed("use-distributed-optimizer", Arity::none, "parallel.zero", distributed_optimizer,
                 "cut optimizer states over data-parallel ranks"),
          on("use-torch-fsdp2", {{.path = "parallel.zero", .value = "3"}},
             "cut optimizer states, gradients and weights over data-parallel ranks"),
          pick("zero-stage", Arity::one,
               {{.word = "0", .path = "parallel.zero", .value = "0"},
                {.word = "1", .path = "parallel.zero", .value = "1"},
                {.word = "2", .path = "parallel.zero", .value = "2"},
                {.word = "3", .path = "parallel.zero", .value = "3"}}),
          on("reduce-gradients-once", {{.path = "parallel.reduce_once", .value = "true"}}),
          on("overlap-grad-reduce", {{.path = "parallel.overlap_reduce", .value = "true"}}),
          pick("data-parallel-sharding-strategy", Arity::one,
               {{.word = "no_shard", .path = "parallel.zero", .value = "0"},
                {.word = "optim", .path = "parallel.zero", .value = "1"},
                {.word = "optim_grads", .path = "parallel.zero", .value = "2"},
                {.word = "optim_grads_params", .path = "parallel.zero", .value = "3"}}),
          value("ranks", "run.ranks"),
          where_to_compute(),
          value("threads", "run.threads"),
          value("sample-prompt", "run.sample_prompt"),
          value("sample-tokens", "run.sample_tokens"),
          no_effect("no-pipeline-parallel", Arity::none,
                    "one stage is the same program with a schedule of one stage"),
          no_effect("DDP-impl", Arity::one, "there is one implementation"),
          value("num-distributed-optimizer-instances", "parallel.shard_groups"),
          value("zero-hpz-partition-size", "parallel.near_ranks"),
          on("zero-quantized-weights", {{.path = "parallel.wire.weights", .value = "true"}}),
          value("zero-quantized-weights-block", "parallel.wire.weight_block"),
          on("zero-quantized-gradients", {{.path = "parallel.wire.gradients", .value = "true"}}),
          value("zero-quantized-gradients-block", "parallel.wire.gradient_block"),
          value("ddp-num-buckets", "parallel.buckets"),
          value("ddp-bucket-size", "parallel.bucket_elements"),
          cannot("data-parallel-random-init", Arity::none, "replicas that start from different weights"),
          no_effect("fp8-param-gather", Arity::none,
                    "weights are gathered in the model's own type and rounded to eight bits with every use"),
          f32_or_bf16("megatron-fsdp-grad-comm-dtype", "scaling.reduce_in_bf16", "other types of gradients"),
          f32_or_bf16("megatron-fsdp-main-grads-dtype", "scaling.sum_in_bf16", "other types of gradients"),
          only_f32("megatron-fsdp-main-params-dtype", "master weights that are not f32"),
          pick("outer-dp-sharding-strategy", Arity::one,
               {{.word = "no_shard"}, {.word = "", .refusal = "optimizer states cut among groups too"}}),
          no_effect(
              "reuse-grad-buf-for-mxfp8-param-ag", Arity::none,
              "weights are gathered in the model's own type, into memory that lasts no longer than that"),
          cannot("max-seqlen-per-dp-cp-rank", Arity::one, "ranks that share long samples alone"),
          cannot("hybrid-context-parallel", Arity::none, "ranks that share long samples alone"),
          cannot("mtp-standalone", Arity::none, "a stage for the layers of further tokens alone"),
          cannot("ddp-param-name-patterns-for-fp32-local-accumulation", Arity::some,
                 "types of gradients by the names of weights"),
          cannot("enable-full-sharding-in-hsdp", Arity::none, "optimizer states cut among groups too"),
          cannot("torch-fsdp2-no-reshard-after-forward", Arity::none,
                 "weights that stay gathered: --data-parallel-sharding-strategy optim_grads cuts none"),
          on("deepspeed", {{.path = "log.lines", .value = "deepspeed"}},
             "lines of the log as Megatron-DeepSpeed's tools read them; settings are read from "
             "--deepspeed_config"),
          parsed("deepspeed_config", Arity::one, "batch.global", deepspeed,
                 "DeepSpeed's JSON; weft help deepspeed lists its keys, and flags must not contradict them"),
          on("deepspeed-activation-checkpointing",
             {{.path = "model.recompute.what", .value = "full"},
              {.path = "model.recompute.method", .value = "uniform"}},
             "recompute every layer"),
      }};
}

}  // namespace weft::cli::dialect
