// The fields of TrainConfig, each listed once: flags, files, help and checkpoints read this list.
#pragma once

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/train/config.h"
#include "weft/train/describe_data.h"
#include "weft/train/describe_optimizer.h"

namespace weft {

template <class Visitor>
void describe(Visitor& v, BatchConfig& c) {
  v("micro", c.micro, OnResume::sums, "samples in one forward pass of a rank", legal::size);
  v("global", c.global, OnResume::told, "samples in one optimizer step, over all ranks", legal::size);
  v("rampup", c.rampup, OnResume::told, "first batch, increment, and the samples over which it grows",
    legal::count);
  v("schedule", c.schedule, OnResume::told,
    "\"0:768 250B:1536\": batch 768 at first, 1536 from 250 billion tokens on");
  v("round_down", c.round_down, OnResume::free, "round a running batch down to what the ranks can share");
  v("per_token_loss", c.per_token_loss, OnResume::step,
    "every counting token of the global batch weighs the same");
}

template <class Visitor>
void describe(Visitor& v, CurriculumConfig& c) {
  v("schedule", c.rule.curve, OnResume::step, "how samples grow longer from step to step");
  v("form", c.form, OnResume::step, "what a step reads of longer samples: the front, or all in pieces");
  v("least", c.rule.least, OnResume::step, "tokens of the first samples", legal::size_or_none);
  v("most", c.rule.most, OnResume::step, "tokens of the longest samples (0: all they have)",
    legal::size_or_none);
  v("steps", c.rule.steps, OnResume::step, "fixed_linear, fixed_root: steps until samples are longest",
    legal::count);
  v("multiple", c.rule.multiple, OnResume::step,
    "fixed_linear, fixed_root: lengths are rounded down to multiples of it", legal::size);
  v("root", c.rule.root, OnResume::step, "fixed_root: 2 for a square root", legal::from_to(0.01, 100));
  v("lengths", c.rule.lengths, OnResume::step, "fixed_discrete: tokens, one length after the other",
    legal::size);
  v("until", c.rule.until, OnResume::step, "fixed_discrete: the last step of each length but the last",
    legal::count);
}

template <class Visitor>
void describe(Visitor& v, LengthConfig& c) {
  v("iterations", c.iterations, OnResume::told, "optimizer steps to take", legal::size_or_none);
  v("samples", c.samples, OnResume::told, "samples to train on", legal::count);
  v("tokens", c.tokens, OnResume::told, "tokens to train on", legal::count);
}

template <class Visitor>
void describe(Visitor& v, RateCycle& c) {
  v("up", c.up, OnResume::free, "one_cycle: steps in which the rate rises", legal::size);
  v("down", c.down, OnResume::free, "steps in which it falls again (unset: as many)", legal::size);
  v("stairs_up", c.stairs_up, OnResume::free, "stairs on the way up (0: none)", legal::size_or_none);
  v("stairs_down", c.stairs_down, OnResume::free, "stairs on the way down (unset: as many)",
    legal::size_or_none);
  v("decay_steps", c.decay_steps, OnResume::free, "steps between two decays after the cycle (0: none)",
    legal::size_or_none);
  v("decay", c.decay, OnResume::free, "what one decay adds to what the rate is divided by",
    legal::not_negative);
  v("momentum", c.momentum, OnResume::free, "the first beta goes against the rate, and the second is 0.99");
  v("least_momentum", c.least_momentum, OnResume::free, "the first beta at the peak of the rate",
    legal::below_one);
  v("most_momentum", c.most_momentum, OnResume::free, "and where the rate begins and ends", legal::below_one);
  v("momentum_growth", c.momentum_growth, OnResume::free,
    "what one decay adds to what that is multiplied with after the cycle", legal::not_negative);
}

template <class Visitor>
void describe(Visitor& v, RateClimb& c) {
  v("steps", c.steps, OnResume::free, "lr_range_test: steps in which the rate grows once", legal::size);
  v("growth", c.growth, OnResume::free, "by so many times the first rate", legal::not_negative);
  v("stairs", c.stairs, OnResume::free, "all at once");
}

template <class Visitor>
void describe(Visitor& v, RateConfig& c) {
  v("peak", c.peak, OnResume::free, "learning rate after warm-up", legal::rate);
  v("floor", c.floor, OnResume::free, "learning rate after decay", legal::rate);
  v("start", c.start, OnResume::free, "learning rate at the start of warm-up", legal::rate);
  v("style", c.style, OnResume::free, "curve of the decay");
  v("decay_iterations", c.decay_iterations, OnResume::free, "steps at which decay is over",
    legal::size_or_none);
  v("decay_samples", c.decay_samples, OnResume::free, "samples at which decay is over", legal::count);
  v("decay_tokens", c.decay_tokens, OnResume::free, "tokens at which decay is over", legal::count);
  v("warmup_iterations", c.warmup_iterations, OnResume::free, "steps of linear warm-up", legal::size_or_none);
  v("warmup_samples", c.warmup_samples, OnResume::free, "samples of linear warm-up", legal::count);
  v("warmup_tokens", c.warmup_tokens, OnResume::free, "tokens of linear warm-up", legal::count);
  v("warmup_fraction", c.warmup_fraction, OnResume::free, "warm-up as a part of the decay", legal::below_one);
  v("anneal_style", c.anneal_style, OnResume::free, "wsd: curve of the last part");
  v("anneal_iterations", c.anneal_iterations, OnResume::free, "wsd: steps of the last part",
    legal::size_or_none);
  v("anneal_samples", c.anneal_samples, OnResume::free, "wsd: samples of the last part", legal::count);
  v("warmup_curve", c.warmup_curve, OnResume::free, "how DeepSpeed's schedules warm up");
  v.group("cycle", c.cycle);
  v.group("climb", c.climb);
  v("embedding_peak", c.embedding_peak, OnResume::free,
    "learning rate of embedding and output layer, if another", legal::rate);
  v("embedding_floor", c.embedding_floor, OnResume::free,
    "learning rate of embedding and output layer after decay", legal::rate);
  v("resume", c.resume, OnResume::free, "whose schedule a resumed run follows");
}

template <class Visitor>
void describe(Visitor& v, ScalingConfig& c) {
  v("constant", c.constant, OnResume::step, "fixed factor on the loss (unset with f16: grown and halved)",
    legal::positive);
  v("initial", c.initial, OnResume::step, "first loss scale", legal::positive);
  v("least", c.least, OnResume::step, "smallest loss scale", legal::positive);
  v("window", c.window, OnResume::step, "clean steps after which the scale doubles", legal::size);
  v("hysteresis", c.hysteresis, OnResume::step, "overflows after which the scale halves", legal::size);
  v("reduce_in_bf16", c.reduce_in_bf16, OnResume::step, "add gradients over ranks in bf16");
  v("sum_in_bf16", c.sum_in_bf16, OnResume::step,
    "keep gradients in bf16 from one microbatch to the next, and add them over ranks so");
}

template <class Visitor>
void describe(Visitor& v, ParallelConfig& c) {
  v("tp", c.tp, OnResume::sums, "ranks that share each layer", legal::degree);
  v("pp", c.pp, OnResume::sums, "stages that layers are spread over", legal::degree);
  v("cp", c.cp, OnResume::sums, "ranks that share a sequence", legal::degree);
  v("dp", c.dp, OnResume::sums, "ranks that share a batch", legal::size_or_none);
  v("ep", c.ep, OnResume::sums, "ranks that hold other experts", legal::degree);
  v("etp", c.etp, OnResume::sums, "ranks that share each expert (0: as many as share other layers)",
    legal::size_or_none);
  v("sequence", c.sequence, OnResume::sums,
    "cut norms and dropout along the sequence over the tensor-parallel ranks");
  v("order", c.order, OnResume::sums, "which ranks are neighbors");
  v("context", c.context, OnResume::sums, "how ranks that share a sequence exchange keys and values");
  v("context_layers", c.context_layers, OnResume::sums, "the same by layer, where layers differ");
  v("context_levels", c.context_levels, OnResume::sums,
    "two_levels: ranks that trade heads, and how many rings go on", legal::degree);
  v("schedule", c.schedule, OnResume::sums,
    "pipeline schedule: gpipe, 1f1b, interleaved, zb-h1, zb-v, or a file");
  v("virtual_stage_layers", c.virtual_stage_layers, OnResume::sums,
    "layers in each of several stages of a rank", legal::size_or_none);
  v("virtual_stages", c.virtual_stages, OnResume::sums, "stages a rank holds", legal::size_or_none);
  v("microbatch_group", c.microbatch_group, OnResume::sums,
    "microbatches a stage takes in a row when interleaved (0: pp)", legal::size_or_none);
  v("layout", c.layout, OnResume::sums, "which layers each stage holds, spelled out");
  v("first_stage_layers", c.first_stage_layers, OnResume::sums,
    "layers of the first stage, if others hold another number", legal::size_or_none);
  v("last_stage_layers", c.last_stage_layers, OnResume::sums,
    "layers of the last stage, if others hold another number", legal::size_or_none);
  v("count_embedding", c.count_embedding, OnResume::sums,
    "the embedding counts as a layer when stages are cut");
  v("count_loss", c.count_loss, OnResume::sums, "the output layer counts as a layer when stages are cut");
  v("zero", c.zero, OnResume::sums,
    "what data-parallel ranks cut up: 1 optimizer states, 2 gradients too, 3 weights too",
    legal::from_to(0, 3));
  v("shard_groups", c.shard_groups, OnResume::sums,
    "groups of data-parallel ranks that each hold all that is cut up: what is gathered comes from the group",
    legal::degree);
  v("near_ranks", c.near_ranks, OnResume::sums,
    "ranks next to each other that hold all cut weights a second time: what is read again comes from these",
    legal::size_or_none);
  v("reduce_once", c.reduce_once, OnResume::sums,
    "where gradients are cut, add those of all microbatches before those of other ranks: the bits of uncut "
    "ones, and room for all of a step's");
  v("overlap_experts", c.overlap_experts, OnResume::free,
    "compute a microbatch's forward beside another's backward, by turns, while rows of experts travel");
  v("delay_weight_grads", c.delay_weight_grads, OnResume::free,
    "put weight gradients off until rows of experts travel; with forwards beside backwards");
  v("overlap_reduce", c.overlap_reduce, OnResume::sums, "add gradients over ranks during backward");
  v("bucket_elements", c.bucket_elements, OnResume::sums,
    "gradients that are added over ranks at once; 0: 40 million with overlap_reduce, else all of a kind",
    legal::count);
  v("buckets", c.buckets, OnResume::sums,
    "into how many buckets the gradients are cut; 0: by bucket_elements", legal::size_or_none);
  v.group("wire", c.wire);
}

template <class Visitor>
void describe(Visitor& v, CheckpointConfig& c) {
  v("save", c.save, OnResume::free, "where checkpoints go");
  v("load", c.load, OnResume::free, "where to resume from");
  v("pretrained", c.pretrained, OnResume::free, "weights to start from if there is nothing to resume");
  v("interval", c.interval, OnResume::free, "steps between checkpoints", legal::size_or_none);
  v("retain_interval", c.retain_interval, OnResume::free, "keep only checkpoints of steps that this divides",
    legal::size_or_none);
  v("step", c.step, OnResume::free, "which checkpoint to load (0: the latest)", legal::size_or_none);
  v("finetune", c.finetune, OnResume::free, "load weights only and count from step 0");
  v("upcycle", c.upcycle, OnResume::free,
    "load a model without experts: each expert begins as the MLP, and the run at step 0");
  v("allow_fresh_start", c.allow_fresh_start, OnResume::free, "start anew if there is nothing to load");
  v("load_optimizer", c.load_optimizer, OnResume::free, "load optimizer states");
  v("load_random", c.load_random, OnResume::free, "load the seed");
  v("save_optimizer", c.save_optimizer, OnResume::free, "save optimizer states");
  v("save_random", c.save_random, OnResume::free, "save the seed");
  v("use_args", c.use_args, OnResume::free, "take the model's settings from the checkpoint");
  v("use_tokenizer", c.use_tokenizer, OnResume::free, "and the tokenizer's");
  v("in_background", c.in_background, OnResume::free, "write while training goes on");
  v("keep_last", c.keep_last, OnResume::free, "keep only the newest so many checkpoints (0: all)",
    legal::size_or_none);
  v("keep_best", c.keep_best, OnResume::free, "and so many of the lowest validation loss",
    legal::size_or_none);
  v("verify", c.verify, OnResume::free, "do the step after the save again before going on, and compare");
}

template <class Visitor>
void describe(Visitor& v, EvalConfig& c) {
  v("interval", c.interval, OnResume::free, "steps between validations (0: none)", legal::size_or_none);
  v("from", c.from, OnResume::free, "the step from which on there are validations", legal::size_or_none);
  v("iterations", c.iterations, OnResume::free, "batches in one validation or test", legal::size_or_none);
  v("micro", c.micro, OnResume::free, "samples in one forward pass when evaluating", legal::size_or_none);
  v("global", c.global, OnResume::free, "samples in one batch when evaluating", legal::size_or_none);
  v("whole_set", c.whole_set, OnResume::free, "validate on the whole set");
  v("skip_train", c.skip_train, OnResume::free, "evaluate only");
}

template <class Visitor>
void describe(Visitor& v, LogConfig& c) {
  v("interval", c.interval, OnResume::free, "steps between lines", legal::size);
  v("engine_interval", c.engine_interval, OnResume::free,
    "steps between lines of DeepSpeed's engine, among Megatron-DeepSpeed's (0: one before each of these)",
    legal::size_or_none);
  v("throughput", c.throughput, OnResume::free, "add TFLOP/s to the line");
  v("lines", c.lines, OnResume::free, "as Megatron writes them, or Megatron-DeepSpeed");
  v("params_norm", c.params_norm, OnResume::free, "add the norm of all weights");
  v("zeros", c.zeros, OnResume::free, "add the number of zeros in the gradient");
  v("experts_by_layer", c.experts_by_layer, OnResume::free,
    "tell of each layer how evenly its experts were chosen, and its balancing losses");
  v("greatest_score", c.greatest_score, OnResume::free, "add the greatest score of attention in all heads");
  v("progress", c.progress, OnResume::free, "append to progress.txt beside the checkpoints");
  v("memory_interval", c.memory_interval, OnResume::free, "steps between reports of memory (0: none)",
    legal::size_or_none);
  v("jsonl", c.jsonl, OnResume::free, "write a JSON object a step to this file");
  v("tensorboard", c.tensorboard, OnResume::free, "write TensorBoard event files to this directory");
  v("tensorboard_interval", c.tensorboard_interval, OnResume::free, "steps between TensorBoard points",
    legal::size);
  v("tensorboard_queue", c.tensorboard_queue, OnResume::free, "points that may wait to be written",
    legal::from_to(1, 1e7));
  v("tensorboard_timers", c.tensorboard_timers, OnResume::free, "timers to TensorBoard");
  v("tensorboard_memory", c.tensorboard_memory, OnResume::free, "memory to TensorBoard");
  v("tensorboard_perplexity", c.tensorboard_perplexity, OnResume::free,
    "validation perplexity to TensorBoard");
  v("tensorboard_world_size", c.tensorboard_world_size, OnResume::free, "number of ranks to TensorBoard");
  v("tensorboard_learning_rate", c.tensorboard_learning_rate, OnResume::free, "learning rate to TensorBoard");
  v("tensorboard_loss_scale", c.tensorboard_loss_scale, OnResume::free, "loss scale to TensorBoard");
  v("timing_level", c.timing_level, OnResume::free, "how finely time is told: 0, 1 or 2",
    legal::from_to(0, 2));
  v("timing_report", c.timing_report, OnResume::free, "longest rank, shortest and longest, or all ranks");
}

template <class Visitor>
void describe(Visitor& v, ProfileConfig& c) {
  v("on", c.on, OnResume::free,
    "show steps of a GPU to a profiler that runs beside this process and waits for cudaProfilerApi, and no "
    "others");
  v("after", c.after, OnResume::free, "the step before the first that it is shown", legal::size_or_none);
  v("last", c.last, OnResume::free, "the last step that it is shown", legal::size);
  v("ranks", c.ranks, OnResume::free, "ranks whose steps those are", legal::size_or_none);
  v("names", c.names, OnResume::free,
    "give names (ranges of NVTX) to what is asked for in these steps: microbatches, layers, parts of the "
    "update");
}

template <class Visitor>
void describe(Visitor& v, GuardConfig& c) {
  v("non_finite", c.non_finite, OnResume::free, "what happens when a loss or gradient is not finite");
  v("spiky_loss", c.spiky_loss, OnResume::free,
    "warn when the loss jumps tenfold; where results are judged, compute it twice before it counts");
  v("skip_iterations", c.skip_iterations, OnResume::free, "steps whose data is read and not learned from",
    legal::size);
  v("replica_check_interval", c.replica_check_interval, OnResume::free,
    "steps between comparisons of all copies of weights, bit for bit (0: none)", legal::size_or_none);
  v("faults", c.faults, OnResume::free,
    "a step that is not finite is done again, and a second result that is right counts; or the run ends and "
    "its exit code, 16 or 17, says what is known of whose fault it is; or every step is computed twice, and "
    "how far the results differ is told");
  v("inject_every", c.inject_every, OnResume::free,
    "take the result of every n-th step for not finite (0: of none)", legal::size_or_none);
  v("injected", c.injected, OnResume::free,
    "when such a made-up fault is there again: never, on the same machine, on any machine");
  v("rerun_interval", c.rerun_interval, OnResume::free,
    "steps between steps that are computed twice before they count, and must give the same bits (0: none)",
    legal::size_or_none);
}

template <class Visitor>
void describe(Visitor& v, ExitConfig& c) {
  v("interval", c.interval, OnResume::free, "stop at a step that this divides", legal::size_or_none);
  v("minutes", c.minutes, OnResume::free, "save and stop after this time (0: no limit)", legal::not_negative);
}

template <class Visitor>
void describe(Visitor& v, RunConfig& c) {
  v("seed", c.seed, OnResume::free, "seed of weights, dropout and data order", legal::from_to(0, 4294967295));
  v("device", c.device, OnResume::sums, "where to compute");
  v("graphs", c.graphs, OnResume::free,
    "ask a GPU for launches that came before in one call, by CUDA graphs that are set anew where they "
    "differ");
  v("warpgroups", c.warpgroups, OnResume::sums,
    "multiply by warpgroups, which GPUs of compute capability 9.0 have, in bf16 and fp16: in attention of "
    "heads of 128 channels at most, in experts and in exact mode");
  v("ranks", c.ranks, OnResume::free, "thread ranks, where no launcher gives them (0: tp times pp times cp)",
    legal::from_to(0, 1 << 20));
  v("threads", c.threads, OnResume::free,
    "threads of a rank (0: the processors it may use, divided by the ranks here)", legal::from_to(0, 65536));
  v("sample_prompt", c.sample_prompt, OnResume::free,
    "when training is done, print how the model goes on from this text");
  v("sample_tokens", c.sample_tokens, OnResume::free, "tokens of that continuation", legal::size);
}

template <class Visitor>
void describe(Visitor& v, TrainConfig& c) {
  v.group("model", c.model);
  v.group("data", c.data);
  v.group("batch", c.batch);
  v.group("curriculum", c.curriculum);
  v.group("length", c.length);
  v.group("optimizer", c.optimizer);
  v.group("rate", c.rate);
  v.group("scaling", c.scaling);
  v.group("parallel", c.parallel);
  v.group("checkpoint", c.checkpoint);
  v.group("eval", c.eval);
  v.group("log", c.log);
  v.group("profile", c.profile);
  v.group("guard", c.guard);
  v.group("exit", c.exit);
  v.group("run", c.run);
}

}  // namespace weft
