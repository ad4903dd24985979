// The fields of TrainConfig, each listed once: flags, files, help and checkpoints read this list.
#pragma once

#include "weft/base/legal.h"
#include "weft/train/config.h"

namespace weft {

template <class Visitor>
void describe(Visitor& v, TokenizerConfig& c) {
  v("type", c.type, "kind of tokenizer");
  v("model", c.model, "tokenizer file, or directory of a Hugging Face model");
  v("vocab_file", c.vocab_file, "vocabulary");
  v("merge_file", c.merge_file, "merges of a byte-level BPE");
  v("pattern", c.pattern, "which split pattern a tiktoken file goes with");
  v("num_special", c.num_special, "special ids before the ranks of a tiktoken file", legal::size_or_none);
  v("special", c.special, "further special tokens");
  v("extra_ids", c.extra_ids, "sentinel ids at the end of the vocabulary", legal::size_or_none);
  v("wraps_text", c.wraps_text, "keep what a tokenizer.json puts around every text");
  v("legacy_pieces", c.legacy_pieces, "special tokens behind a SentencePiece model's pieces");
  v("drops_spaces", c.drops_spaces, "let a SentencePiece model drop repeated spaces, if it does");
  v("eod_id", c.eod_id, "end of document of NullTokenizer, in place of the last id", legal::size_or_none);
  v("pad_id", c.pad_id, "padding of NullTokenizer", legal::from_to(-1, legal::size_limit));
}

template <class Visitor>
void describe(Visitor& v, FimConfig& c) {
  v("on", c.on, "cut documents in three, and ask for the middle last");
  v("rate", c.rate, "part of the documents that are cut", legal::fraction);
  v("suffix_first_rate", c.suffix_first_rate, "part of these whose suffix comes before the prefix",
    legal::fraction);
  v("split", c.split, "a token that ends fragments of a document, which are then cut one by one");
  v("fragment_rate", c.fragment_rate, "part of the fragments that are cut", legal::fraction);
  v("spared", c.spared, "documents that begin with this text stay as they are");
  v("prefix", c.prefix, "token before the prefix");
  v("middle", c.middle, "token before the middle");
  v("suffix", c.suffix, "token before the suffix");
  v("pad", c.pad, "token that fills what a sample got shorter by");
  v("eod", c.eod, "token that ends documents");
}

template <class Visitor>
void describe(Visitor& v, DataConfig& c) {
  v("paths", c.paths, "token files without .bin or .idx, or weight and file in turn; cut by the split");
  v("train_paths", c.train_paths, "token files for training");
  v("valid_paths", c.valid_paths, "token files for validation");
  v("test_paths", c.test_paths, "token files for the final test");
  v("paths_file", c.paths_file, "a file that holds the list of token files");
  v("per_split_file", c.per_split_file, "a JSON file with a list of token files for each split");
  v("split", c.split, "proportions of training, validation and test documents");
  v("mock", c.mock, "train on made-up documents");
  v("cache", c.cache, "where indices are kept");
  v("cache_version", c.cache_version,
    "the release of Megatron core that names cached indices, such as 0.16; left out: the newest");
  v("cache_tokenizer", c.cache_tokenizer,
    "a JSON file that stands for the tokenizer in the names of cached indices");
  v("index", c.index, "a stored shuffle as Megatron's, or one that is computed");
  v("order", c.order, "one pass over the samples, or shuffled passes");
  v("sharded_cycles", c.sharded_cycles, "cyclic: every data-parallel rank shuffles a part of its own");
  v("mask_eod_loss", c.mask_eod_loss, "no loss where the end of a document is predicted");
  v("reset_positions", c.reset_positions, "positions start again after the end of a document");
  v("reset_attention", c.reset_attention, "a document does not see the one before it");
  v("between_documents", c.between_documents,
    "attention and positions begin anew with each document of the data, whatever its tokens");
  v("ambiguous_pad", c.ambiguous_pad, "a padding token counts as such even where it is another one too");
  v("partial_validation", c.partial_validation, "pad and keep the last, shorter validation sample");
  v("separate_validation", c.separate_validation, "a loss for each validation set instead of their blend");
  v("validation_names", c.validation_names, "names of the validation sets, in place of their numbers");
  v.group("tokenizer", c.tokenizer);
  v.group("fim", c.fim);
}

template <class Visitor>
void describe(Visitor& v, BatchConfig& c) {
  v("micro", c.micro, "samples in one forward pass of a rank", legal::size);
  v("global", c.global, "samples in one optimizer step, over all ranks", legal::size);
  v("rampup", c.rampup, "first batch, increment, and the samples over which it grows", legal::count);
  v("schedule", c.schedule, "\"0:768 250B:1536\": batch 768 at first, 1536 from 250 billion tokens on");
  v("round_down", c.round_down, "round a running batch down to what the ranks can share");
  v("per_token_loss", c.per_token_loss, "every counting token of the global batch weighs the same");
}

template <class Visitor>
void describe(Visitor& v, LengthConfig& c) {
  v("iterations", c.iterations, "optimizer steps to take", legal::size_or_none);
  v("samples", c.samples, "samples to train on", legal::count);
  v("tokens", c.tokens, "tokens to train on", legal::count);
}

template <class Visitor>
void describe(Visitor& v, LionConfig& c) {
  v("beta1", c.beta1, "lion: share of momentum in the direction", legal::below_one);
  v("beta2", c.beta2, "lion: decay of momentum", legal::below_one);
}

template <class Visitor>
void describe(Visitor& v, LambConfig& c) {
  v("least", c.least, "lamb: smallest trust ratio of a tensor", legal::not_negative);
  v("most", c.most, "lamb: largest trust ratio of a tensor", legal::positive);
  v("bias_correction", c.bias_correction, "lamb: early steps are longer, as moments start at zero");
  v("epsilon_inside", c.epsilon_inside, "lamb: epsilon is added before the root");
}

template <class Visitor>
void describe(Visitor& v, MuonConfig& c) {
  v("momentum", c.momentum, "muon: decay of momentum", legal::below_one);
  v("nesterov", c.nesterov, "muon: look one step ahead");
  v("split_qkv", c.split_qkv, "muon: queries, keys and values are matrices of their own");
  v("scale", c.scale, "muon: length of an update, by the matrix's shape");
  v("extra_scale", c.extra_scale, "muon: factor of every update", legal::positive);
  v("ranks", c.ranks, "muon: how a matrix that ranks hold parts of is made orthogonal");
  v("precision", c.precision, "muon: products in bf16 (medium) or f32 (high, highest)");
  v("rounds", c.rounds, "muon: coefficients of the Newton-Schulz steps");
  v("steps", c.steps, "muon: Newton-Schulz steps", legal::size);
}

template <class Visitor>
void describe(Visitor& v, OneBitConfig& c) {
  v("freeze", c.freeze, "1-bit Adam: the step from which momentum travels in one bit", legal::size);
}

template <class Visitor>
void describe(Visitor& v, OptimizerConfig& c) {
  v("kind", c.kind, "how gradients become updates");
  v("beta1", c.beta1, "decay of the first moment", legal::below_one);
  v("beta2", c.beta2, "decay of the second moment", legal::below_one);
  v("epsilon", c.epsilon, "added to the root of the second moment", legal::positive);
  v("momentum", c.momentum, "momentum of sgd", legal::below_one);
  v("weight_decay", c.weight_decay, "decay of matrices and embeddings", legal::rate);
  v("weight_decay_start", c.weight_decay_start, "weight decay at the start, where it grows", legal::rate);
  v("weight_decay_end", c.weight_decay_end, "weight decay at the end, where it grows", legal::rate);
  v("weight_decay_growth", c.weight_decay_growth, "how weight decay grows");
  v("decoupled_decay", c.decoupled_decay, "take the decay off the weights, not through the gradient");
  v("decay_qk_norm", c.decay_qk_norm, "decay the gains of query and key norms too");
  v("clip", c.clip, "largest global norm of the gradient (0: not clipped)", legal::not_negative);
  v("any_moment_type", c.any_moment_type, "moments of Adam may have fewer bits");
  v("first_moment", c.first_moment, "what Adam's first moment is kept in");
  v("second_moment", c.second_moment, "what Adam's second moment is kept in");
  v.group("lion", c.lion);
  v.group("lamb", c.lamb);
  v.group("muon", c.muon);
  v.group("onebit", c.onebit);
}

template <class Visitor>
void describe(Visitor& v, RateConfig& c) {
  v("peak", c.peak, "learning rate after warm-up", legal::rate);
  v("floor", c.floor, "learning rate after decay", legal::rate);
  v("start", c.start, "learning rate at the start of warm-up", legal::rate);
  v("style", c.style, "curve of the decay");
  v("decay_iterations", c.decay_iterations, "steps at which decay is over", legal::size_or_none);
  v("decay_samples", c.decay_samples, "samples at which decay is over", legal::count);
  v("decay_tokens", c.decay_tokens, "tokens at which decay is over", legal::count);
  v("warmup_iterations", c.warmup_iterations, "steps of linear warm-up", legal::size_or_none);
  v("warmup_samples", c.warmup_samples, "samples of linear warm-up", legal::count);
  v("warmup_tokens", c.warmup_tokens, "tokens of linear warm-up", legal::count);
  v("warmup_fraction", c.warmup_fraction, "warm-up as a part of the decay", legal::below_one);
  v("anneal_style", c.anneal_style, "wsd: curve of the last part");
  v("anneal_iterations", c.anneal_iterations, "wsd: steps of the last part", legal::size_or_none);
  v("anneal_samples", c.anneal_samples, "wsd: samples of the last part", legal::count);
  v("embedding_peak", c.embedding_peak, "learning rate of embedding and output layer, if another",
    legal::rate);
  v("embedding_floor", c.embedding_floor, "learning rate of embedding and output layer after decay",
    legal::rate);
  v("resume", c.resume, "whose schedule a resumed run follows");
}

template <class Visitor>
void describe(Visitor& v, ScalingConfig& c) {
  v("constant", c.constant, "fixed factor on the loss (unset with f16: grown and halved)", legal::positive);
  v("initial", c.initial, "first loss scale", legal::positive);
  v("least", c.least, "smallest loss scale", legal::positive);
  v("window", c.window, "clean steps after which the scale doubles", legal::size);
  v("hysteresis", c.hysteresis, "overflows after which the scale halves", legal::size);
  v("reduce_in_bf16", c.reduce_in_bf16, "add gradients over ranks in bf16");
}

template <class Visitor>
void describe(Visitor& v, ParallelConfig& c) {
  v("tp", c.tp, "ranks that share each layer", legal::degree);
  v("pp", c.pp, "stages that layers are spread over", legal::degree);
  v("cp", c.cp, "ranks that share a sequence", legal::degree);
  v("dp", c.dp, "ranks that share a batch", legal::size_or_none);
  v("sequence", c.sequence, "cut norms and dropout along the sequence over the tensor-parallel ranks");
  v("order", c.order, "which ranks are neighbors");
  v("context", c.context, "how ranks that share a sequence exchange keys and values");
  v("schedule", c.schedule, "pipeline schedule: gpipe, 1f1b, interleaved, zb-h1, zb-v, or a file");
  v("virtual_stage_layers", c.virtual_stage_layers, "layers in each of several stages of a rank",
    legal::size_or_none);
  v("virtual_stages", c.virtual_stages, "stages a rank holds", legal::size_or_none);
  v("microbatch_group", c.microbatch_group, "microbatches a stage takes in a row when interleaved (0: pp)",
    legal::size_or_none);
  v("layout", c.layout, "which layers each stage holds, spelled out");
  v("first_stage_layers", c.first_stage_layers, "layers of the first stage, if others hold another number",
    legal::size_or_none);
  v("last_stage_layers", c.last_stage_layers, "layers of the last stage, if others hold another number",
    legal::size_or_none);
  v("count_embedding", c.count_embedding, "the embedding counts as a layer when stages are cut");
  v("count_loss", c.count_loss, "the output layer counts as a layer when stages are cut");
  v("zero", c.zero, "what data-parallel ranks cut up: 1 optimizer states, 2 gradients too, 3 weights too",
    legal::from_to(0, 3));
  v("overlap_reduce", c.overlap_reduce, "add gradients over ranks during backward");
  v("bucket_elements", c.bucket_elements,
    "gradients that are added over ranks at once; 0: 40 million with overlap_reduce, else all of a kind",
    legal::count);
  v("buckets", c.buckets, "into how many buckets the gradients are cut; 0: by bucket_elements",
    legal::size_or_none);
}

template <class Visitor>
void describe(Visitor& v, CheckpointConfig& c) {
  v("save", c.save, "where checkpoints go");
  v("load", c.load, "where to resume from");
  v("pretrained", c.pretrained, "weights to start from if there is nothing to resume");
  v("interval", c.interval, "steps between checkpoints", legal::size_or_none);
  v("retain_interval", c.retain_interval, "keep only checkpoints of steps that this divides",
    legal::size_or_none);
  v("step", c.step, "which checkpoint to load (0: the latest)", legal::size_or_none);
  v("finetune", c.finetune, "load weights only and count from step 0");
  v("allow_fresh_start", c.allow_fresh_start, "start anew if there is nothing to load");
  v("load_optimizer", c.load_optimizer, "load optimizer states");
  v("load_random", c.load_random, "load the seed");
  v("save_optimizer", c.save_optimizer, "save optimizer states");
  v("save_random", c.save_random, "save the seed");
  v("use_args", c.use_args, "take the model's settings from the checkpoint");
  v("use_tokenizer", c.use_tokenizer, "and the tokenizer's");
  v("in_background", c.in_background, "write while training goes on");
  v("keep_last", c.keep_last, "keep only the newest so many checkpoints (0: all)", legal::size_or_none);
  v("keep_best", c.keep_best, "and so many of the lowest validation loss", legal::size_or_none);
  v("verify", c.verify, "do the step after the save again before going on, and compare");
}

template <class Visitor>
void describe(Visitor& v, EvalConfig& c) {
  v("interval", c.interval, "steps between validations (0: none)", legal::size_or_none);
  v("iterations", c.iterations, "batches in one validation or test", legal::size_or_none);
  v("micro", c.micro, "samples in one forward pass when evaluating", legal::size_or_none);
  v("global", c.global, "samples in one batch when evaluating", legal::size_or_none);
  v("whole_set", c.whole_set, "validate on the whole set");
  v("skip_train", c.skip_train, "evaluate only");
}

template <class Visitor>
void describe(Visitor& v, LogConfig& c) {
  v("interval", c.interval, "steps between lines", legal::size);
  v("throughput", c.throughput, "add TFLOP/s to the line");
  v("params_norm", c.params_norm, "add the norm of all weights");
  v("zeros", c.zeros, "add the number of zeros in the gradient");
  v("progress", c.progress, "append to progress.txt beside the checkpoints");
  v("memory_interval", c.memory_interval, "steps between reports of memory (0: none)", legal::size_or_none);
  v("jsonl", c.jsonl, "write a JSON object a step to this file");
  v("tensorboard", c.tensorboard, "write TensorBoard event files to this directory");
  v("tensorboard_interval", c.tensorboard_interval, "steps between TensorBoard points", legal::size);
  v("tensorboard_queue", c.tensorboard_queue, "points that may wait to be written", legal::from_to(1, 1e7));
  v("tensorboard_timers", c.tensorboard_timers, "timers to TensorBoard");
  v("tensorboard_memory", c.tensorboard_memory, "memory to TensorBoard");
  v("tensorboard_perplexity", c.tensorboard_perplexity, "validation perplexity to TensorBoard");
  v("tensorboard_world_size", c.tensorboard_world_size, "number of ranks to TensorBoard");
  v("tensorboard_learning_rate", c.tensorboard_learning_rate, "learning rate to TensorBoard");
  v("tensorboard_loss_scale", c.tensorboard_loss_scale, "loss scale to TensorBoard");
  v("timing_level", c.timing_level, "how finely time is told: 0, 1 or 2", legal::from_to(0, 2));
  v("timing_report", c.timing_report, "longest rank, shortest and longest, or all ranks");
}

template <class Visitor>
void describe(Visitor& v, GuardConfig& c) {
  v("non_finite", c.non_finite, "what happens when a loss or gradient is not finite");
  v("spiky_loss", c.spiky_loss, "warn when the loss jumps tenfold");
  v("skip_iterations", c.skip_iterations, "steps whose data is read and not learned from", legal::size);
  v("replica_check_interval", c.replica_check_interval,
    "steps between comparisons of all copies of weights, bit for bit (0: none)", legal::size_or_none);
  v("faults", c.faults, "do a step that is not finite again, to tell a passing fault of the machine");
  v("inject_every", c.inject_every, "take the result of every n-th step for not finite (0: of none)",
    legal::size_or_none);
  v("injected", c.injected, "whether such a made-up fault is there again when the step is done again");
}

template <class Visitor>
void describe(Visitor& v, ExitConfig& c) {
  v("interval", c.interval, "stop at a step that this divides", legal::size_or_none);
  v("minutes", c.minutes, "save and stop after this time (0: no limit)", legal::not_negative);
}

template <class Visitor>
void describe(Visitor& v, RunConfig& c) {
  v("seed", c.seed, "seed of weights, dropout and data order", legal::from_to(0, 4294967295));
  v("device", c.device, "where to compute");
  v("ranks", c.ranks, "thread ranks, where no launcher gives them (0: tp times pp times cp)",
    legal::from_to(0, 1 << 20));
  v("threads", c.threads, "threads of a rank (0: the processors it may use, divided by the ranks here)",
    legal::from_to(0, 65536));
  v("sample_prompt", c.sample_prompt, "when training is done, print how the model goes on from this text");
  v("sample_tokens", c.sample_tokens, "tokens of that continuation", legal::size);
}

template <class Visitor>
void describe(Visitor& v, TrainConfig& c) {
  v.group("model", c.model);
  v.group("data", c.data);
  v.group("batch", c.batch);
  v.group("length", c.length);
  v.group("optimizer", c.optimizer);
  v.group("rate", c.rate);
  v.group("scaling", c.scaling);
  v.group("parallel", c.parallel);
  v.group("checkpoint", c.checkpoint);
  v.group("eval", c.eval);
  v.group("log", c.log);
  v.group("guard", c.guard);
  v.group("exit", c.exit);
  v.group("run", c.run);
}

}  // namespace weft
