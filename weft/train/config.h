// TrainConfig: everything a run is told, one struct per subject. describe.h lists the fields.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/excerpt.h"
#include "weft/data/lengths.h"
#include "weft/model/config.h"
#include "weft/nn/context_form.h"
#include "weft/optim/config.h"
#include "weft/optim/rate.h"
#include "weft/report/record.h"
#include "weft/train/wire.h"

namespace weft {

enum class SampleOrder : std::uint8_t { single, cyclic };
/// stored: Megatron's shuffled index; keyed: a permutation that is computed, any step addressable at once.
enum class IndexKind : std::uint8_t { stored, keyed };
enum class SchedulerSource : std::uint8_t { must_agree, given, checkpoint };
/// What a run on conversations learns: what its format's rule says, the answers alone, of each conversation
/// the last of them, or every word.
enum class LearnedWords : std::uint8_t { by_format, answers, last, all };
/// What a loss or gradient that is not finite does.
enum class NonFinite : std::uint8_t { stop, skip, rescale };
enum class RankOrderKind : std::uint8_t { tp_cp_ep_dp_pp, tp_cp_ep_pp_dp };
/// What a result that cannot be means: nothing is looked for; the step is done again, and a second result
/// that is right counts; or the run ends and says, perhaps only on another machine, whether a machine erred;
/// or every step is computed twice, and the second result counts.
enum class FaultCheck : std::uint8_t { off, rerun, judge, report };
/// A fault that is made up: gone when the step is done again; there as long as the machine is the same; or on
/// any machine.
enum class InjectedFault : std::uint8_t { passing, lasting, everywhere };

constexpr std::array<std::string_view, 2> words(SampleOrder) { return {"single", "cyclic"}; }
constexpr std::array<std::string_view, 2> words(IndexKind) { return {"stored", "keyed"}; }
constexpr std::array<std::string_view, 3> words(SchedulerSource) {
  return {"must_agree", "given", "checkpoint"};
}
constexpr std::array<std::string_view, 3> words(NonFinite) { return {"stop", "skip", "rescale"}; }
constexpr std::array<std::string_view, 4> words(LearnedWords) {
  return {"by_format", "answers", "last", "all"};
}
constexpr std::array<std::string_view, 2> words(RankOrderKind) {
  return {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
}
constexpr std::array<std::string_view, 4> words(FaultCheck) { return {"off", "rerun", "judge", "report"}; }
constexpr std::array<std::string_view, 3> words(InjectedFault) {
  return {"passing", "lasting", "everywhere"};
}

struct TokenizerConfig {
  std::string type;  // Megatron's name: GPT2BPETokenizer, HuggingFaceTokenizer, NullTokenizer, …
  std::string model, vocab_file, merge_file;
  std::string pattern;              // tiktoken: v1 or v2
  std::int64_t num_special = 1000;  // tiktoken: special ids before the ranks
  std::vector<std::string> special;
  int extra_ids = 0;                           // T5's sentinels
  bool legacy = false;                         // BERT's: as Megatron had them up to 0.14
  bool wraps_text = true;                      // tokenizer.json: what it puts around every text
  bool legacy_pieces = false;                  // SentencePiece: special tokens behind the pieces
  bool drops_spaces = true;                    // SentencePiece: repeated ones, if the model does
  std::optional<std::int64_t> eod_id, pad_id;  // of NullTokenizer
};

/// Fill-in-the-middle; markers are tokens by their own text.
struct FimConfig {
  bool on = false;
  double rate = 0.5, suffix_first_rate = 0.5;
  std::string split;  // fragments of a document end with this token; empty: it is one
  std::optional<double> fragment_rate;
  std::string spared;  // text that begins so stays as it is
  std::string prefix = "<fim_prefix>", middle = "<fim_middle>", suffix = "<fim_suffix>";
  std::string pad = "<fim_pad>", eod = "<|endoftext|>";
};

/// Conversations instead of documents: JSON lines of messages.
struct ChatConfig {
  bool on = false;
  std::string format = "nemotron-h-aligned";  // how messages become text: Megatron's names
  LearnedWords learned = LearnedWords::by_format;
};

/// Words that BERT and T5 are to guess.
struct MaskingConfig {
  double probability = 0.15;
  double short_probability = 0.1;  // that a sample is cut for a shorter length
};

/// DeepSpeed's curricula by an index of samples.
struct DifficultyConfig {
  std::vector<std::string> metrics;  // each in one word (data/difficulty.h)
  std::int64_t seed = 1234;

  bool on() const { return !metrics.empty(); }
};

struct DataConfig {
  std::vector<std::string> paths;  // prefixes, or weight prefix weight prefix …
  std::vector<std::string> train_paths, valid_paths, test_paths;
  std::string paths_file, per_split_file;  // a file that holds `paths`; a JSON file of lists per split
  std::string split;                       // "949,50,1"
  bool mock = false;
  std::string cache;
  std::string
      cache_version;  // whose names the cached indices get: a release of Megatron core; empty: the newest
  std::string cache_tokenizer;  // a JSON file that stands for the tokenizer in those names
  IndexKind index = IndexKind::stored;
  SampleOrder order = SampleOrder::single;
  std::int64_t exact_epochs = 0;  // of the training documents; 0: as many as the run takes
  bool sharded_cycles = true;     // cyclic: every data-parallel rank shuffles a part of its own
  bool mask_eod_loss = false, reset_positions = false, reset_attention = false;
  bool between_documents = false;    // attention and positions begin anew with each document of the data
  bool ambiguous_pad = false;        // padding counts as such where its id is another special token's too
  bool partial_validation = false;   // the last, shorter validation sample is padded and kept
  bool separate_validation = false;  // a loss for each validation set
  std::vector<std::string> validation_names;
  TokenizerConfig tokenizer;
  FimConfig fim;
  ChatConfig chat;
  MaskingConfig masking;
  DifficultyConfig difficulty;
};

struct BatchConfig {
  std::int64_t micro = 0;
  std::int64_t global = 0;           // 0: micro times the data-parallel ranks
  std::vector<std::int64_t> rampup;  // start, increment, samples
  std::string schedule;              // "0:768 250B:1536": threshold in tokens, batch from there on
  bool round_down = false;           // a running batch that does not divide is rounded down
  bool per_token_loss = false;       // the objective is a mean over the tokens of the global batch
};

/// Samples that are shorter at first, or in stairs.
struct CurriculumConfig {
  data::LengthRule rule;
  data::ExcerptForm form = data::ExcerptForm::truncate;
};

/// One of the three.
struct LengthConfig {
  std::int64_t iterations = 0, samples = 0, tokens = 0;
};

struct RateConfig {
  std::optional<double> peak;
  double floor = 0.0, start = 0.0;
  RateStyle style = RateStyle::linear;
  std::int64_t decay_iterations = 0, decay_samples = 0, decay_tokens = 0;
  std::int64_t warmup_iterations = 0, warmup_samples = 0, warmup_tokens = 0;
  std::optional<double> warmup_fraction;
  AnnealStyle anneal_style = AnnealStyle::exponential;
  std::int64_t anneal_iterations = 0, anneal_samples = 0;
  WarmupCurve warmup_curve = WarmupCurve::log;
  RateCycle cycle = {};
  RateClimb climb = {};
  std::optional<double> embedding_peak, embedding_floor;
  SchedulerSource resume = SchedulerSource::must_agree;
};

struct ScalingConfig {
  std::optional<double> constant;  // unset with f16: dynamic
  double initial = 4294967296.0, least = 1.0;
  std::int64_t window = 1000;
  int hysteresis = 2;
  bool reduce_in_bf16 = false;  // gradients
  bool sum_in_bf16 = false;     // they are kept in bf16, and travel so
};

struct ParallelConfig {
  int tp = 1, pp = 1, cp = 1;
  int dp = 0;   // 0: what is left of the ranks
  int ep = 1;   // ranks that hold other experts
  int etp = 0;  // ranks that share each expert; 0: as many as share other layers
  bool sequence = false;
  RankOrderKind order = RankOrderKind::tp_cp_ep_dp_pp;
  ContextForm context = ContextForm::ring;
  std::vector<ContextForm> context_layers;  // one a layer; empty: all layers do the same
  std::vector<int> context_levels;          // ranks that trade heads, and rings of them
  std::string schedule;                     // empty: 1f1b, or interleaved with virtual stages
  int virtual_stage_layers = 0, virtual_stages = 0, microbatch_group = 0;
  std::string layout;
  int first_stage_layers = 0, last_stage_layers = 0;
  bool count_embedding = false, count_loss = false;
  int zero = 0;
  int shard_groups = 1;  // of data-parallel ranks, each of which holds all that zero cuts up
  int near_ranks = 0;    // that hold all weights a second time among them; 0: none do
  bool overlap_reduce = false;
  bool reduce_once = false;
  bool overlap_experts = false, delay_weight_grads = false;
  std::int64_t bucket_elements = 0, buckets = 0;  // 0: by overlap_reduce
  WireConfig wire = {};
};

struct CheckpointConfig {
  std::string save, load, pretrained;
  std::int64_t interval = 0, retain_interval = 0;
  std::int64_t step = 0;  // which to load; 0: the latest
  bool finetune = false, allow_fresh_start = false;
  bool upcycle = false;
  bool load_optimizer = true, load_random = true, save_optimizer = true, save_random = true;
  bool use_args = false, use_tokenizer = true;
  bool in_background = false;
  int keep_last = 0, keep_best = 0;  // 0: no such rule
  bool verify = false;
};

struct EvalConfig {
  std::int64_t interval = 0;  // 0: never
  std::int64_t from = 0;      // the first step that it may be due at
  std::int64_t iterations = 100;
  std::int64_t micro = 0, global = 0;  // 0: as in training
  bool whole_set = false;
  bool skip_train = false;
};

struct LogConfig {
  std::int64_t interval = 100;
  std::int64_t engine_interval = 0;  // 0: with every other line
  bool throughput = false, params_norm = false, zeros = false, progress = false;
  bool experts_by_layer = false, greatest_score = false;
  std::int64_t memory_interval = 0;
  std::string jsonl;
  std::string tensorboard;
  std::int64_t tensorboard_interval = 1, tensorboard_queue = 1000;
  bool tensorboard_timers = false, tensorboard_memory = false, tensorboard_perplexity = false;
  bool tensorboard_world_size = false, tensorboard_learning_rate = true, tensorboard_loss_scale = true;
  report::LineForm lines = report::LineForm::megatron;
  int timing_level = 0;
  report::TimerForm timing_report = report::TimerForm::minmax;
};

/// Steps that a profiler beside the process is shown: those behind `after`, and with them `last`.
struct ProfileConfig {
  bool on = false;
  std::int64_t after = 10, last = 12;
  std::vector<std::int64_t> ranks = {0};
  bool names = false;  // what is asked for in them has names
};

struct GuardConfig {
  NonFinite non_finite = NonFinite::stop;
  bool spiky_loss = false;
  std::vector<std::int64_t> skip_iterations;
  std::int64_t replica_check_interval = 0;
  FaultCheck faults = FaultCheck::rerun;
  std::int64_t inject_every = 0;  // 0: no fault is made up
  InjectedFault injected = InjectedFault::passing;
  std::int64_t rerun_interval = 0;  // 0: no step is computed twice
};

struct ExitConfig {
  std::int64_t interval = 0;
  double minutes = 0;
};

struct RunConfig {
  std::int64_t seed = 1234;
  std::string device = "cpu";
  bool graphs = false;              // a GPU's launches that came before are asked for in one call
  bool warpgroups = false;          // products by warpgroups, on a GPU that has them
  int ranks = 0;                    // thread ranks; 0: tp·pp·cp
  int threads = 0;                  // of a rank; 0: the processors it may use
  std::string sample_prompt;        // text to go on from when training is done; empty: none
  std::int64_t sample_tokens = 64;  // of its continuation
};

struct TrainConfig {
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  CurriculumConfig curriculum;
  LengthConfig length;
  OptimizerConfig optimizer;
  RateConfig rate;
  ScalingConfig scaling;
  ParallelConfig parallel;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  LogConfig log;
  ProfileConfig profile;
  GuardConfig guard;
  ExitConfig exit;
  RunConfig run;
};

}  // namespace weft
