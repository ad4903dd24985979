// Rules of batches, length, evaluation and data.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/data/split.h"
#include "weft/model/kinds.h"
#include "weft/model/layer_parts.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

/// Of a rank in a step: each has a batch and a count. And over all stages of a pipeline, whose program every
/// rank makes before its first step.
constexpr std::int64_t most_passes = 1'000'000, most_in_a_pipeline = 4'000'000;

/// The samples of a step, and what to call them.
struct StepSamples {
  std::int64_t global = 0, micro = 0;
  std::string_view global_name, micro_name;
  std::int64_t pieces = 1;  // of each, where they are passes
};

void can_be_scheduled(const StepSamples& samples, const TrainConfig& c) {
  const std::int64_t rows = sums_of(c.model).samples_of_a_pass(samples.micro);
  const std::int64_t passes = samples.global / rows / sample_ranks(c.parallel) * samples.pieces;
  const std::int64_t stages =
      c.parallel.pp > 1 ? std::int64_t{c.parallel.pp} * std::max(c.parallel.virtual_stages, 1) : 1;
  if (passes <= most_passes && passes * stages <= most_in_a_pipeline) return;
  const std::string where =
      passes > most_passes ? text(" a rank, more than ", most_passes)
                           : text(" through ", stages, " stages, more than ", most_in_a_pipeline, " in all");
  const std::string larger =
      c.model.exact ? std::string() : text("a larger ", samples.micro_name, " than ", samples.micro, ", ");
  const std::string pieces =
      samples.pieces == 1 ? std::string() : text(" in pieces, ", samples.pieces, " each,");
  fail(Kind::usage, samples.global_name, ' ', samples.global, pieces, " is ", passes,
       c.model.exact ? " sequences" : " microbatches", where, ": take ", larger,
       "a smaller batch or more data-parallel ranks");
}

/// The largest batch of a run.
StepSamples largest(const BatchConfig& b) {
  StepSamples out{
      .global = b.global, .micro = b.micro, .global_name = "{batch.global}", .micro_name = "{batch.micro}"};
  if (b.schedule.empty()) return out;
  out.global_name = "{batch.schedule}: a batch of";
  for (const BatchStep& step : read_batch_steps(b.schedule)) out.global = std::max(out.global, step.batch);
  return out;
}

}  // namespace

void validate::batches(TrainConfig& c) {
  BatchConfig& b = c.batch;
  if (b.micro < 1) fail(Kind::usage, "{batch.micro} is not set: how many samples a rank takes at once");
  if (!b.schedule.empty()) {
    const std::int64_t last = read_batch_steps(b.schedule).back().batch;
    if (b.global > 0 && b.global != last)
      fail(Kind::usage, "{batch.schedule} ends with a batch of ", last, ", and {batch.global} ", b.global,
           " is another: leave it out");
    if (!b.rampup.empty() || b.round_down)
      fail(Kind::usage,
           "{batch.schedule} goes with neither {batch.rampup} nor "
           "{batch.round_down}");
    b.global = last;
  }
  if (b.global == 0) b.global = b.micro * sample_ranks(c.parallel);
  if (b.global < 0) fail(Kind::usage, "{batch.global} ", b.global, " is not at least 1");
  (void)batch_schedule(c);  // refuses batches that ranks cannot share
  can_be_scheduled(largest(b), c);
  if (c.parallel.pp == 1) return;
  const std::int64_t share = rows_of_a_pass(c.model, b) * sample_ranks(c.parallel);
  if (b.global % share == 0) static_cast<void>(schedule_of(c.parallel, int(b.global / share)));
}

void validate::pieces(const TrainConfig& c, std::int64_t each) {
  StepSamples samples = largest(c.batch);
  samples.pieces = each;
  can_be_scheduled(samples, c);
}

void validate::length(TrainConfig& c) {
  const LengthConfig& l = c.length;
  const RateConfig& r = c.rate;
  if (l.iterations > 0 && l.samples > 0)
    fail(Kind::usage, "{length.iterations} and {length.samples} both say how long to train: leave one out");
  if (l.iterations <= 0 && l.samples <= 0 && l.tokens <= 0 && !c.eval.skip_train)
    fail(Kind::usage,
         "nothing says how long to train: {length.iterations}, {length.samples} or {length.tokens}, of 1 or "
         "more");
  if (l.iterations > 0 && (r.decay_samples > 0 || r.warmup_samples > 0 || r.anneal_samples > 0))
    fail(Kind::usage,
         "{length.iterations} counts steps: use {rate.decay_iterations}, {rate.warmup_iterations} and "
         "{rate.anneal_iterations}");
  if (l.samples > 0 && !counts_steps(r.style) &&
      (r.decay_iterations > 0 || r.warmup_iterations > 0 || r.anneal_iterations > 0))
    fail(Kind::usage,
         "{length.samples} counts samples: use {rate.decay_samples}, {rate.warmup_samples} and "
         "{rate.anneal_samples}");
}

void validate::evaluation(TrainConfig& c) {
  EvalConfig& e = c.eval;
  if (e.micro == 0) e.micro = c.batch.micro;
  const std::int64_t share = e.micro * sample_ranks(c.parallel);
  if (e.global == 0) {
    e.global = c.batch.global;
    if (c.batch.round_down && share > 0 && e.global >= share) e.global -= e.global % share;
  }
  if (e.micro < 1 || e.global < 1 || e.global % share != 0)
    fail(Kind::usage, "evaluation batch size ", e.global,
         " is not a multiple of micro batch size times data-parallel ranks, ", share,
         ": give another {eval.global}");
  can_be_scheduled(
      {.global = e.global, .micro = e.micro, .global_name = "{eval.global}", .micro_name = "{eval.micro}"},
      c);
  if (e.iterations < 0) fail(Kind::usage, "{eval.iterations} ", e.iterations, " is not 0 or more");
}

namespace {

/// What betas become in a cycle, at its worst in the last step.
void check_momentum(const TrainConfig& c, const RatePlan& plan, std::int64_t steps) {
  const RateCycle& cycle = c.rate.cycle;
  const OptimizerKind kind = c.optimizer.kind;
  if (!plan.betas_at(Learned{})) return;
  constexpr std::string_view who = "{rate.style} one_cycle";
  if (!follows_betas(kind))
    fail(Kind::usage, who, " moves betas, and {optimizer.kind=", words(kind)[std::size_t(kind)],
         "} has none that may move: take adam, lamb or lion, or a cycle without momentum");
  if (cycle.least_momentum > cycle.most_momentum)
    fail(Kind::usage, who, ": its least momentum ", cycle.least_momentum, " is greater than its most, ",
         cycle.most_momentum);
  const double last = plan.betas_at(Learned{.samples = (steps - 1) * c.batch.global})->first;
  if (last >= 1)
    fail(Kind::usage, who, ": its momentum would be ", last, " in step ", steps,
         ", and must stay below 1: let it grow less after the cycle");
}

}  // namespace

void validate::rates(const TrainConfig& c) {
  const RateConfig& r = c.rate;
  if (c.eval.skip_train) return;
  if (!r.peak) fail(Kind::usage, "{rate.peak} is not set: the learning rate after warm-up");
  if (*r.peak < 0 || r.floor < 0)
    fail(Kind::usage, "a learning rate is not 0 or more: {rate.peak} ", *r.peak, ", {rate.floor} ", r.floor);
  if (r.floor > *r.peak)
    fail(Kind::usage, "{rate.floor} ", r.floor, " is greater than {rate.peak} ", *r.peak);
  if (r.start > *r.peak)
    fail(Kind::usage, "{rate.start} ", r.start, " is greater than {rate.peak} ", *r.peak);
  if (r.warmup_fraction && (r.warmup_iterations > 0 || r.warmup_samples > 0 || r.warmup_tokens > 0))
    fail(Kind::usage, "{rate.warmup_fraction} and a length of warm-up contradict each other: leave one out");
  if (r.warmup_fraction && !(*r.warmup_fraction >= 0 && *r.warmup_fraction < 1))
    fail(Kind::usage, "{rate.warmup_fraction} ", *r.warmup_fraction, " is not at least 0 and below 1");
  if (counts_steps(r.style) && (r.warmup_fraction || r.warmup_samples > 0 || r.warmup_tokens > 0 ||
                                r.decay_samples > 0 || r.decay_tokens > 0))
    fail(Kind::usage, "{rate.style} ", words(r.style)[std::size_t(r.style)],
         " counts steps: leave {rate.warmup_fraction}, {rate.warmup_samples}, {rate.warmup_tokens}, "
         "{rate.decay_samples} and {rate.decay_tokens} out");
  const std::int64_t steps = run_length(c).steps;
  const RatePlan plan = run_schedules(c, steps).rate;
  const RateSchedule& s = plan.schedule;
  check_momentum(c, plan, steps);
  const std::string_view unit = r.decay_tokens > 0 || r.warmup_tokens > 0 ? "tokens" : "samples";
  const bool decays = !counts_steps(s.style) || s.style == RateStyle::warmup_decay_lr ||
                      s.style == RateStyle::warmup_cosine_lr;
  if (decays && s.warmup >= double(s.decay))
    fail(Kind::usage, "warm-up over ", s.warmup, " ", unit, " does not end before the decay at ", s.decay,
         " ", unit);
  if (s.style == RateStyle::wsd && (s.anneal < 1 || s.anneal > s.decay))
    fail(Kind::usage,
         "{rate.style=wsd} needs {rate.anneal_iterations} or -samples between 1 and the decay at ", s.decay,
         " ", unit, ", found ", s.anneal);
}

namespace {

/// What is said of documents, who have none or cannot tell them apart.
void validate_documents(const TrainConfig& c) {
  const DataConfig& d = c.data;
  const bool of_documents = d.mask_eod_loss || d.reset_positions || d.reset_attention ||
                            d.between_documents || d.partial_validation || d.fim.on;
  if (of_documents && kind_of(c.model).samples(c.model).of != Samples::Of::documents)
    fail(Kind::usage, c.model.kind,
         ": {data.mask_eod_loss}, {data.reset_positions}, {data.reset_attention}, "
         "{data.between_documents}, {data.partial_validation} and {data.fim.on} are for "
         "windows on documents, and here samples are sentences with hidden words: leave them out");
  if (d.between_documents && (d.reset_positions || d.reset_attention))
    fail(Kind::usage,
         "{data.between_documents} begins anew with each document, {data.reset_positions} and "
         "{data.reset_attention} behind each end-of-document token: leave one of them out");
  if (c.model.delta.on && (d.between_documents || d.reset_attention))
    fail(Kind::usage,
         "{model.delta.on}: layers that remember go on from one document to the next: leave "
         "{data.between_documents} and {data.reset_attention} out");
  if (parts_in_all(c.model, LayerPart::state) > 0 && (d.between_documents || d.reset_attention))
    fail(Kind::usage,
         "{model.hybrid.layers}: state spaces go on from one document to the next: leave "
         "{data.between_documents} and {data.reset_attention} out");
}

/// What is said of windows on documents, or of lines that are all read alike.
std::string_view not_with_conversations(const TrainConfig& c) {
  const DataConfig& d = c.data;
  if (d.fim.on) return "{data.fim.on} cuts documents";
  if (d.reset_positions) return "{data.reset_positions} goes by end-of-document tokens";
  if (d.reset_attention) return "{data.reset_attention} goes by end-of-document tokens";
  if (d.mask_eod_loss) return "{data.mask_eod_loss} goes by end-of-document tokens";
  if (d.partial_validation) return "{data.partial_validation} pads a last window on documents";
  if (d.exact_epochs > 0) return "{data.exact_epochs} counts epochs of documents";
  if (d.difficulty.on()) return "{data.difficulty.metrics} orders windows on documents";
  if (c.curriculum.rule.curve != data::LengthCurve::none)
    return "{curriculum.schedule} reads the front of a sample, where questions are";
  return {};
}

/// What is said of conversations.
void validate_conversations(const TrainConfig& c) {
  const DataConfig& d = c.data;
  if (!d.chat.on) return;
  if (kind_of(c.model).samples(c.model).of != Samples::Of::documents)
    fail(Kind::usage, "{data.chat.on} teaches a model to go on from a text, and one of the family ",
         c.model.kind, " guesses hidden words: leave it out");
  if (d.mock)
    fail(Kind::usage, "{data.mock}: no conversations are made up for {data.chat.on}: give {data.paths}");
  if (const std::string_view why = not_with_conversations(c); !why.empty())
    fail(Kind::usage, why,
         ", and {data.chat.on} reads a line of conversations a sample: leave one of them out");
  const std::string& type = d.tokenizer.type;
  if (type != "SFTTokenizer" && type != "HuggingFaceTokenizer" && type != "HFTokenizer")
    fail(Kind::usage,
         "{data.chat.on} reads conversations by a tokenizer of Hugging Face's, found {data.tokenizer.type} ",
         type, ": give {data.tokenizer.type=SFTTokenizer} and {data.tokenizer.model}, its directory");
  constexpr std::array<std::string_view, 4> formats = {"nemotron-h-aligned", "nemotron-nano-v2", "identity",
                                                       "default"};
  if (std::ranges::find(formats, d.chat.format) == formats.end())
    fail(Kind::usage, "{data.chat.format} ", d.chat.format, ": expected ", join(formats, ", "));
}

}  // namespace

void validate::data(TrainConfig& c, std::vector<std::string>& notices) {
  DataConfig& d = c.data;
  const bool per_split =
      !d.train_paths.empty() || !d.valid_paths.empty() || !d.test_paths.empty() || !d.per_split_file.empty();
  const bool together = !d.paths.empty() || !d.paths_file.empty();
  const int sources = d.mock + per_split + together;
  if (sources == 0)
    fail(Kind::usage, "nothing to train on: give {data.paths}, paths per split, or {data.mock}");
  if (sources > 1)
    fail(Kind::usage,
         "data come from one place: {data.paths}, paths per split, or {data.mock}, and more than one was "
         "given");
  if (per_split && !d.split.empty())
    fail(Kind::usage, "{data.split} cuts {data.paths}; paths per split are cut already");
  if (d.split.empty() && !per_split) d.split = "969, 30, 1";
  if (!d.split.empty()) (void)data::split_weights(d.split);
  if (d.tokenizer.type.empty() && c.model.vocabulary == 0)
    fail(Kind::usage,
         "nothing says which token ids may occur: give {data.tokenizer.type} with its files, or "
         "{model.vocabulary}");
  if (d.tokenizer.type == "NullTokenizer" && c.model.vocabulary == 0)
    fail(Kind::usage, "{data.tokenizer.type} NullTokenizer needs {model.vocabulary}");
  if (!c.run.sample_prompt.empty() && d.tokenizer.type.empty())
    fail(Kind::usage,
         "{run.sample_prompt} needs a tokenizer, and {model.vocabulary} alone is none: give "
         "{data.tokenizer.type} with its "
         "files");
  if (!c.run.sample_prompt.empty() && kind_of(c.model).speech == Speech::guesses)
    fail(Kind::usage, "{run.sample_prompt}: a model of the family ", c.model.kind,
         " does not go on from a text");
  if (d.fim.on && d.tokenizer.type.empty())
    fail(Kind::usage,
         "{data.fim.on} reads text, so it needs a tokenizer: give {data.tokenizer.type} with its files");
  if (d.fim.on && d.fim.split.empty() == d.fim.fragment_rate.has_value())
    fail(Kind::usage, "{data.fim.split} and {data.fim.fragment_rate} go together: give both or neither");
  validate_documents(c);
  validate_conversations(c);
  if (!d.validation_names.empty() && !d.separate_validation)
    fail(Kind::usage, "{data.validation_names} needs {data.separate_validation}");
  if (!d.sharded_cycles && d.order == SampleOrder::single)
    notices.push_back(
        "no effect here: {data.sharded_cycles=false} (only {data.order=cyclic} shuffles by rank)");
  if (d.sharded_cycles && d.order == SampleOrder::cyclic && c.model.exact && sample_ranks(c.parallel) > 1)
    fail(Kind::usage,
         "{data.order=cyclic} gives every data-parallel rank samples of its own, so another layout "
         "trains on "
         "others: give {data.sharded_cycles=false} with {model.exact}");
}

}  // namespace weft
