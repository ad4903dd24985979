// DeepSpeed's keys but those of ZeRO, optimizers, schedules and blocks that are refused as a whole.
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

void accumulation(Taking& t, const Key& key, const Json& value) {
  const double n = value.get<double>();
  if (!(n >= 1 && n <= legal::size_limit))
    fail(Kind::usage, key.path, ": ", n, " is not a whole number of 1 or more");
  t.out().accumulation = std::int64_t(n);
}

/// One of the two precisions: false says that it is not this one.
void precision(Taking& t, const Key& key, const Json& value, std::string_view word) {
  if (value == true) return t.set(key.path, "model.precision", {std::string(word)});
  t.never(key.path, "model.precision", word);
}

// Where the first scale is not said, DeepSpeed's is another than Megatron's.
void fp16(Taking& t, const Key& key, const Json& value) {
  precision(t, key, value, "f16");
  if (value == true) t.usual("scaling.initial", "65536");
}
void bf16(Taking& t, const Key& key, const Json& value) { precision(t, key, value, "bf16"); }

void loss_scale(Taking& t, const Key& key, const Json& value) {
  const double scale = value.get<double>();
  if (scale == 0) return t.set(key.path, "scaling.constant", {});
  t.set(key.path, "scaling.constant", {write_word(scale)});
}

void initial_scale(Taking& t, const Key& key, const Json& value) {
  t.set(key.path, "scaling.initial", {write_word(std::exp2(value.get<double>()))});
}

void gradients_travel(Taking& t, const Key& key, const Json& value) {
  const std::string word = value.get<std::string>();
  if (word != "bf16" && word != "fp32")
    fail(Kind::usage, key.path, " ", word, ": gradients travel in fp32, or in bf16");
  t.set(key.path, "scaling.reduce_in_bf16", {word == "bf16" ? "true" : "false"});
}

void gradients_are_kept(Taking& t, const Key& key, const Json& value) {
  const std::string word = value.get<std::string>();
  if (word != "bf16" && word != "fp32")
    fail(Kind::usage, key.path, " ", word, ": gradients are kept in fp32, or in bf16");
  if (word == "bf16" && t.word_at("communication_data_type", "") == "fp32")
    fail(Kind::usage, "communication_data_type fp32: what ", key.path,
         " keeps in bf16 travels so; leave it out");
  t.set(key.path, "scaling.sum_in_bf16", {word == "bf16" ? "true" : "false"});
}

// Layers between two of those that are kept.
void recompute(Taking& t, const Key& key, const Json& value) {
  const std::int64_t layers = value.get<std::int64_t>();
  if (layers == 0) return;
  t.set(key.path, "model.recompute.what", {"full"});
  t.set(key.path, "model.recompute.method", {"uniform"});
  t.set(key.path, "model.recompute.layers", {write_word(layers)});
}

void ulysses(Taking& t, const Key& key, const Json& value) {
  t.set(key.path, "parallel.cp", {write_word(value.get<std::int64_t>())});
  if (value != 1) t.set(key.path, "parallel.context", {"heads"});
}

void events(Taking& t, const Key&, const Json& value) {
  if (value == false) return;
  const std::string path = t.word_at("tensorboard.output_path", "");
  if (path.empty())
    fail(Kind::usage,
         "tensorboard.enabled needs tensorboard.output_path: the directory that event files go to");
  t.set("tensorboard.output_path", "log.tensorboard",
        {path + (path.ends_with("/") ? "" : "/") + t.word_at("tensorboard.job_name", "DeepSpeedJobName")});
}
void with_events(Taking&, const Key&, const Json&) {}  // `events` has read it

constexpr std::string_view
    nothing_leaves = "nothing leaves this machine; --log-jsonl and --tensorboard-dir write what W&B can sync",
    counted =
        "work is counted from shapes, for every step; weft train --dry-run and weft bench tell the parts",
    timed = "every kind of exchange has its timer",
    once = "the factor is applied once, where the loss gradient starts",
    by_log = "--log-interval says how often a run tells of itself",
    pooled = "memory is pooled and its amount known", graph = "a step launches from compiled code",
    any_layout = "a checkpoint is written by all ranks at once and loads under any layout",
    one_update = "one update is for every device", whole_batches = "a step takes a whole batch",
    stage_files = "every stage holds and writes its own layers", amp_on = R"({"amp":{"enabled":true}})",
    cast_on = R"({"torch_autocast":{"enabled":true}})", fp16_on = R"({"fp16":{"enabled":true}})",
    bf16_on = R"({"bf16":{"enabled":true}})",
    tb_on = R"({"tensorboard":{"enabled":true,"output_path":"tb"}})",
    flops_on = R"({"flops_profiler":{"enabled":true}})", comms_on = R"({"comms_logger":{"enabled":true}})",
    wandb_on = R"({"wandb":{"enabled":true}})", comet_on = R"({"comet":{"enabled":true}})",
    csv_on = R"({"csv_monitor":{"enabled":true}})";

// clang-format off
constexpr Key batch[] = {
    sets("train_batch_size", whole, "batch.global", "samples in a step, over all ranks; with one of the two below it says the other", "64"),
    sets("train_micro_batch_size_per_gpu", whole, "batch.micro", "samples in one pass of a rank", "8"),
    does("gradient_accumulation_steps", whole, accumulation,
         "batch = this times micro batch times data-parallel ranks: two of the three give the third, and all three must agree once the ranks are known", "4"),
    idle("dataloader_drop_last", flag, whole_batches, "true"),
    sets("gradient_clipping", real, "optimizer.clip", "largest norm of the gradient, over all ranks; 0, which is any, where neither it nor a flag is there", "0.5"),
    idle("prescale_gradients", flag, once, "true"),
    idle("gradient_predivide_factor", real, once, "2.0"),
    refuses("gradient_allreduce_op", text, "gradients that are added and not averaged", "mean|avg", "\"sum\""),
    refuses("managed_gradient_accumulation", flag, "steps whose ends another program sets", "true", "false"),
    refuses("sparse_gradients", flag, "gradients of embeddings as lists of rows", "false", "true"),
    idle("fp32_allreduce", flag, "gradients travel in f32 unless communication_data_type says otherwise", "true"),
    does("communication_data_type", text, gradients_travel, "the type of gradients on their way: fp32, or bf16; fp16 is refused", "\"bf16\""),
    refuses("seq_parallel_communication_data_type", text, "another type than f32 for what sequence-parallel ranks add", "fp32", "\"bf16\""),
    does("data_types.grad_accum_dtype", text, gradients_are_kept, "what gradients are kept in from one microbatch to the next: fp32, or bf16, and then they travel so; fp16 is refused", "\"bf16\""),
    idle("disable_allgather", flag, "weights are gathered as a layer needs them", "true"),
    idle("allgather_size", whole, "weights are gathered as a layer needs them", "500000000"),
    does("sequence_parallel_size", whole, ulysses, "`parallel.cp`, and heads travel (`parallel.context` = heads), as Ulysses does", "2"),
    sets("tensor_parallel.autotp_size", whole, "parallel.tp", "ranks that share each layer", "2"),
    refuses("use_data_before_expert_parallelism", flag, "another order of ranks among experts", "false", "true"),
    idle("vocabulary_size", whole, "the tokenizer or --vocab-size says it", "1024"),
    sets("seed", whole, "run.seed", "of weights, dropout and the order of samples", "7"),
};

constexpr Key types[] = {
    does("fp16.enabled", flag, fp16, "`model.precision` = f16; false: not that", "true"),
    beside(fp16_on, does("fp16.loss_scale", real, loss_scale, "`scaling.constant`; 0 is a scale that moves", "128")),
    beside(fp16_on, does("fp16.initial_scale_power", whole, initial_scale, "`scaling.initial` = 2 to this; without it 16, where --fp16 alone has 32", "11")),
    beside(fp16_on, sets("fp16.loss_scale_window", whole, "scaling.window", "clean steps after which the scale doubles; DeepSpeed waits for one more at the start and after an overflow", "500")),
    beside(fp16_on, sets("fp16.hysteresis", whole, "scaling.hysteresis", "overflows after which it halves", "3")),
    beside(fp16_on, sets("fp16.min_loss_scale", real, "scaling.least", "it goes no lower", "2")),
    beside(fp16_on, refuses("fp16.consecutive_hysteresis", flag, "a count of overflows that begins anew at each clean step", "false", "true")),
    beside(fp16_on, idle("fp16.auto_cast", flag, "token ids need no casting", "true")),
    beside(fp16_on, refuses("fp16.fp16_master_weights_and_grads", flag, "master weights and sums of gradients in 16 bits", "false", "true")),
    does("bf16.enabled", flag, bf16, "`model.precision` = bf16; false: not that", "true"),
    beside(bf16_on, idle("bf16.immediate_grad_update", flag, "gradients are summed as they are made", "true")),
    beside(bf16_on, idle("bf16.check_grad_overflow", flag, "a step whose gradient is not finite is never applied; --non-finite says what then", "true")),
    beside(bf16_on, refuses("bf16.bf16_master_weights_and_grads", flag, "master weights and sums of gradients in 16 bits", "false", "true")),
    beside(bf16_on, refuses("bf16.bf16_optimizer_states", flag,
         "states in bf16 from here; --use-precision-aware-optimizer with --exp-avg-dtype does it", "false", "true")),
    does("bfloat16.enabled", flag, bf16, "the old name of bf16.enabled", "true"),
    refuses("amp.enabled", flag, "Apex's mixed precision; bf16 and fp16 are weft's own", "false", "true"),
    beside(amp_on, refuses("amp.opt_level", text, "goes with amp.enabled", "", "\"O1\"")),
    refuses("torch_autocast.enabled", flag, "PyTorch's mixed precision; bf16 and fp16 are weft's own", "false", "true"),
    beside(cast_on, refuses("torch_autocast.dtype", text, "goes with torch_autocast.enabled", "", "\"bfloat16\"")),
    beside(cast_on, refuses("torch_autocast.lower_precision_safe_modules", list, "goes with torch_autocast.enabled", "", "[]")),
};

constexpr Key telling[] = {
    sets("steps_per_print", whole, "log.engine_interval", "steps between lines of DeepSpeed's engine, `steps: … loss: …`; where it is not said, one stands before each line of Megatron's", "10"),
    turns_on("wall_clock_breakdown", "log.timing_level", "2", "`log.timing_level` = 2: the parts of a step, on each line"),
    turns_on("memory_breakdown", "log.memory_interval", "1", "`log.memory_interval` = 1: memory, at each step"),
    idle("dump_state", flag, "weft train --dry-run prints every setting and who set it", "true"),
    idle("log_level", text, by_log, "\"info\""),
    turns_on("flops_profiler.enabled", "log.throughput", "true", "`log.throughput`: TFLOP/s of a rank on each line"),
    beside(flops_on, idle("flops_profiler.profile_step", whole, counted, "1")),
    beside(flops_on, idle("flops_profiler.module_depth", whole, counted, "-1")),
    beside(flops_on, idle("flops_profiler.top_modules", whole, counted, "1")),
    beside(flops_on, idle("flops_profiler.detailed", flag, counted, "true")),
    beside(flops_on, idle("flops_profiler.output_file", text, counted, "\"flops.txt\"")),
    beside(flops_on, idle("flops_profiler.recompute_fwd_factor", real, counted, "0.0")),
    turns_on("comms_logger.enabled", "log.timing_level", "2",
         "`log.timing_level` = 2: what ranks wait for, by kind, on each line; weft train --dry-run tells how much they say"),
    beside(comms_on, idle("comms_logger.verbose", flag, timed, "true")),
    beside(comms_on, idle("comms_logger.prof_all", flag, timed, "true")),
    beside(comms_on, idle("comms_logger.debug", flag, timed, "true")),
    beside(comms_on, idle("comms_logger.prof_ops", list, timed, "[]")),
    beside(R"({"tensorboard":{"output_path":"tb"}})", does("tensorboard.enabled", flag, events,
         "`log.tensorboard` = output_path/job_name; tags are Megatron's, not `Train/Samples/…`", "true")),
    beside(tb_on, does("tensorboard.output_path", text, with_events, "see tensorboard.enabled", "\"other\"")),
    beside(tb_on, does("tensorboard.job_name", text, with_events, "see tensorboard.enabled", "\"gpt\"")),
    idle("wandb.enabled", flag, nothing_leaves, "true"),
    beside(wandb_on, idle("wandb.group", text, nothing_leaves, "\"g\"")),
    beside(wandb_on, idle("wandb.team", text, nothing_leaves, "\"t\"")),
    beside(wandb_on, idle("wandb.project", text, nothing_leaves, "\"p\"")),
    idle("comet.enabled", flag, nothing_leaves, "true"),
    beside(comet_on, idle("comet.samples_log_interval", whole, nothing_leaves, "100")),
    beside(comet_on, idle("comet.project", text, nothing_leaves, "\"p\"")),
    beside(comet_on, idle("comet.workspace", text, nothing_leaves, "\"w\"")),
    beside(comet_on, idle("comet.api_key", text, nothing_leaves, "\"k\"")),
    beside(comet_on, idle("comet.experiment_name", text, nothing_leaves, "\"e\"")),
    beside(comet_on, idle("comet.experiment_key", text, nothing_leaves, "\"e\"")),
    beside(comet_on, idle("comet.online", flag, nothing_leaves, "true")),
    beside(comet_on, idle("comet.mode", text, nothing_leaves, "\"create\"")),
    refuses("csv_monitor.enabled", flag, "a CSV file for each number; --log-jsonl writes all of them, a line a step", "false", "true"),
    beside(csv_on, refuses("csv_monitor.output_path", text, "goes with csv_monitor.enabled", "", "\"csv\"")),
    beside(csv_on, refuses("csv_monitor.job_name", text, "goes with csv_monitor.enabled", "", "\"gpt\"")),
};

constexpr Key keeping[] = {
    sets("activation_checkpointing.partition_activations", flag, "model.recompute.cut",
         "tensor-parallel ranks keep a part each of the inputs of recomputed layers", "true"),
    refuses("activation_checkpointing.cpu_checkpointing", flag,
         "saved activations in another memory; --recompute-granularity is what to use", "false", "true"),
    idle("activation_checkpointing.contiguous_memory_optimization", flag, pooled, "true"),
    idle("activation_checkpointing.number_checkpoints", whole, pooled, "24"),
    idle("activation_checkpointing.synchronize_checkpoint_boundary", flag, "there are no streams to wait for", "true"),
    idle("activation_checkpointing.profile", flag, "recomputation is part of the backward timers", "true"),
    sets("pipeline.stages", whole, "parallel.pp", "stages that layers are spread over", "2"),
    refuses("pipeline.partition", text,
         "stages cut by parameters or names; --pipeline-model-parallel-layout spells them out", "best|uniform", "\"parameters\""),
    refuses("pipeline.seed_layers", flag, "a seed for each layer; weights have addresses here", "false", "true"),
    does("pipeline.activation_checkpoint_interval", whole, recompute,
         "so many layers in a row are recomputed from their input (`model.recompute` = full, uniform); 0: none", "2"),
    idle("pipeline.pipe_partitioned", flag, stage_files, "true"),
    idle("pipeline.grad_partitioned", flag, stage_files, "true"),
    idle("pipeline.use_reentrant", flag, stage_files, "true"),
    idle("checkpoint.tag_validation", text, any_layout, "\"Warn\""),
    idle("checkpoint.load_universal", flag, any_layout, "true"),
    idle("checkpoint.parallel_write.pipeline_stage", flag, any_layout, "true"),
    refuses("checkpoint.use_node_local_storage", flag, "checkpoints on the disks of single machines", "false", "true"),
    refuses("checkpoint.writer", map, "DeepSpeed's fast writer; --async-save writes while training goes on", "", "{\"type\":\"vanilla\"}"),
    idle("graph_harvesting", flag, graph, "true"),
    idle("compile.enabled", flag, graph, "true"),
    beside(R"({"compile":{"enabled":true}})", idle("compile.backend", text, graph, "\"inductor\"")),
    beside(R"({"compile":{"enabled":true}})", idle("compile.kwargs", map, graph, "{}")),
    idle("zero_allow_untested_optimizer", flag, "every optimizer says itself what ZeRO may cut", "true"),
    idle("zero_force_ds_cpu_optimizer", flag, one_update, "true"),
};
// clang-format on

}  // namespace

std::vector<Key> general_keys() {
  std::vector<Key> out(std::begin(batch), std::end(batch));
  out.insert(out.end(), std::begin(types), std::end(types));
  out.insert(out.end(), std::begin(telling), std::end(telling));
  out.insert(out.end(), std::begin(keeping), std::end(keeping));
  return out;
}

}  // namespace weft::cli::dialect::ds
