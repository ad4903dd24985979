// Flags that Megatron-DeepSpeed adds to Megatron's, but for its experts (moe.cpp).
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {
namespace {

constexpr std::string_view
    one_way = "there is one implementation",
    pooled = "memory is pooled and its amount known",
    any_layout = "every checkpoint loads under every layout", teacher = "a teacher that a model learns from",
    others_cache =
        "indices of another program, named file by file; --data-cache-path finds "
        "Megatron's by their names",
    lengths = "--deepspeed_config, or --curriculum-schedule, says how samples grow longer",
    host = "states in another memory than the ranks'; --optimizer-cpu-offload puts them in files";

}  // namespace

Group megatron_deepspeed() {
  return {
      "Megatron-DeepSpeed",
      {
          {.flag = "ds-sequence-parallel-size",
           .effects = {{.path = "parallel.cp"}, {.path = "parallel.context", .value = "heads"}},
           .text = "ranks that share a sequence, whose heads travel (Ulysses)"},
          no_effect("force-ds-sequence-parallel", Arity::none, "heads travel wherever a sequence is shared"),
          value("layer-drop-theta", "model.layer_drop.theta"),
          value("layer-drop-gamma", "model.layer_drop.gamma"),
          list("token-drop-layers", Arity::some, "model.token_drop.layers"),
          value("token-drop-min-tokens", "model.token_drop.least"),
          value("token-drop-max-tokens", "model.token_drop.most"),
          value("token-drop-steps", "model.token_drop.steps"),
          value("token-drop-multiple", "model.token_drop.multiple"),
          on("override-lr-scheduler", {{.path = "rate.resume", .value = "given"}},
             "the old spelling of --override-opt-param-scheduler"),
          on("use-checkpoint-lr-scheduler", {{.path = "rate.resume", .value = "checkpoint"}},
             "the old spelling of --use-checkpoint-opt-param-scheduler"),
          no_effect("no-load-lr-state", Arity::none,
                    "the rate is a function of what was learned from, and has no state"),
          value("checkpoint-num-layers", "model.recompute.layers"),
          value("activations-checkpoint-num-layers", "model.recompute.layers"),
          value("zero-reduce-bucket-size", "parallel.bucket_elements"),
          no_effect("zero-allgather-bucket-size", Arity::one, "weights are gathered as a layer needs them"),
          no_effect("zero-contigious-gradients", Arity::none, pooled),
          no_effect("zero-reduce-scatter", Arity::none, "ranks add what they keep"),
          on("partition-activations", {{.path = "model.recompute.cut", .value = "true"}}),
          cannot("distributed-checkpointed-activations", Arity::none,
                 "saved activations cut over tensor-parallel ranks"),
          no_effect("contigious-checkpointing", Arity::none, pooled),
          no_effect("checkpoint-in-cpu", Arity::none, "activations lie in the memory that ranks compute in"),
          no_effect("synchronize-each-layer", Arity::none, "there are no streams to wait for"),
          no_effect("profile-backward", Arity::none, "--timing-log-level 2 has timers for it"),
          cannot("cpu-optimizer", Arity::none, host),
          no_effect("cpu_torch_adam", Arity::none, one_way),
          no_effect("ds_fused_adam", Arity::none, one_way),
          no_effect("use-pin-memory", Arity::none, pooled),
          pick("remote-device", Arity::one,
               {{.word = "none"}, {.word = "", .refusal = "weights in files or another memory"}}),
          no_effect("memory-centric-tiled-linear", Arity::none, "products are computed in tiles"),
          no_effect("tile-factor", Arity::one, "products are computed in tiles"),
          no_effect("split-transformers", Arity::none, "a layer gathers what it reads, and no more"),
          no_effect("scatter-gather-tensors-in-pipeline", Arity::none,
                    "stages send what the next one reads, once"),
          no_effect("deepspeed_mpi", Arity::none, "ranks are found by what started them"),
          gone("deepscale", "--deepspeed"),
          gone("deepscale_config", "--deepspeed_config"),
          no_effect("universal-checkpoint", Arity::none, any_layout),
          cannot("load-tag", Arity::one, "checkpoints by a name; --ckpt-step says which step"),
          value("train-data-exact-num-epochs", "data.exact_epochs"),
          cannot("train-desc-path", Arity::one, others_cache),
          cannot("train-doc-idx-path", Arity::one, others_cache),
          cannot("train-sample-idx-path", Arity::one, others_cache),
          cannot("train-shuffle-idx-path", Arity::one, others_cache),
          cannot("train-idx-path", Arity::one, others_cache),
          no_effect("return-data-index", Arity::none, "a sample's place follows from its step"),
          no_effect("repeated-dataloader", Arity::none, "the order of samples has no end"),
          no_effect("mmap-warmup", Arity::none, "the next batch is read while one is computed"),
          no_effect("data-efficiency-curriculum-learning", Arity::none, lengths),
          no_effect("curriculum-learning", Arity::none, lengths),
          no_effect("random-ltd", Arity::none,
                    "data_routing.random_ltd of --deepspeed_config says which layers tokens pass by"),
          cannot("custom-token-counting", Arity::none, "tokens that another program counts"),
          cannot("compression-training", Arity::none, "weights of fewer bits, or fewer weights"),
          cannot("mos", Arity::none, teacher),
          cannot("kd", Arity::none, teacher),
          cannot("kd-alpha-ce", Arity::one, teacher),
          cannot("kd-beta-ce", Arity::one, teacher),
          cannot("kd-temp", Arity::one, teacher),
          cannot("num-layers-teacher", Arity::one, teacher),
          cannot("num-experts-teacher", Arity::some, teacher),
          cannot("hidden-size-teacher", Arity::one, teacher),
          cannot("num-attention-heads-teacher", Arity::one, teacher),
          cannot("load-teacher", Arity::one, teacher),
          cannot("reset-iteration", Arity::none, teacher),
          cannot("ds-inference", Arity::none, "text from DeepSpeed's engine: weft generate"),
          cannot("inference", Arity::none, "text from DeepSpeed's engine: weft generate"),
          no_effect("disable-moe-top2-2nd-expert-sampling", Arity::none,
                    "the second expert is the second best, without noise"),
      }};
}

}  // namespace weft::cli::dialect
