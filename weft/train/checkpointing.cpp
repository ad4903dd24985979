// What a run says about itself in its checkpoints, and taking itself up again.
#include "weft/train/checkpointing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/model/count.h"
#include "weft/train/keep_tokenizer.h"
#include "weft/train/ranks.h"
#include "weft/train/resume.h"
#include "weft/train/resume_weights.h"

namespace weft {
namespace {

/// The steps that were validated when they were saved, those of the lowest loss first.
std::vector<std::int64_t> ranked(const RunPosition& run) {
  std::vector<std::pair<double, std::int64_t>> order;
  for (std::size_t i = 0; i < run.validated_steps.size(); ++i)
    if (!std::isnan(run.validated_losses[i]))
      order.emplace_back(run.validated_losses[i], run.validated_steps[i]);
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> out;
  for (const auto& [loss, step] : order) out.push_back(step);
  return out;
}

std::string_view reason_of(Ending how) {
  switch (how) {
    case Ending::asked:
      return "a signal asked for it";
    case Ending::unreadable:
      return "what comes next of the data cannot be read, see below";
    case Ending::at_interval:
      return "{exit.interval} asked for it";
    default:
      return "{exit.minutes} is over";
  }
}

}  // namespace

Checkpointing::Checkpointing(const TrainConfig& config, const Lent& lent, const Checkpointed& run)
    : config_(config),
      lent_(lent),
      run_(run),
      tokenizer_(tokenizer_fact(config.data.tokenizer, config.model.vocabulary)) {}

void Checkpointing::open() {
  const CheckpointConfig& k = config_.checkpoint;
  std::vector<std::int64_t> passed_over;
  if (!k.load.empty() || !k.pretrained.empty()) passed_over = take_up();
  if (k.save.empty()) return;
  const FileSystem& files = lent_.files != nullptr ? *lent_.files : disk();
  saver_ = std::make_unique<Saver>(k, lent_.mesh.world(), lent_.log, files);
  if (tells()) saver_->keep(keep_tokenizer(tokenizer_));
  must_not_mix_runs(k, run_.progress.first_step - 1, passed_over, lent_.mesh.world());
}

std::vector<std::int64_t> Checkpointing::take_up() {
  Resumed found = resume({.config = config_,
                          .weights = run_.replica.weights(),
                          .optimizer = run_.replica.optimizer(),
                          .world = lent_.mesh.world(),
                          .scales = run_.replica.fp8().named(),
                          .schedules = run_.progress.schedules,
                          .tokenizer = tokenizer_});
  for (const std::string& notice : found.notices)
    if (tells()) lent_.log.warning(notice);
  if (!found.facts) return {};
  if (tells())
    lent_.log.info(found.weights_only
                       ? fmt::format("weights from {}; the run starts at step 0", found.from.string())
                       : fmt::format("resumed from {}: step {}, {} samples consumed", found.from.string(),
                                     found.facts->run.step, found.facts->run.consumed_samples));
  if (!found.weights_only) {
    restore(*found.facts);
    take_up_suspicion(found.from);
    if (config_.checkpoint.verify)
      run_.verifier.expect(*found.facts, kinship(*found.facts, config_, found.from.string()), run_.progress);
  }
  return found.passed_over;
}

void Checkpointing::restore(const RunFacts& facts) {
  const RunPosition& at = facts.run;
  position_ = at;
  run_.progress.last_batch = at.last_batch;
  run_.progress.first_step = at.step + 1;
  run_.stepper.seek(at.consumed_samples);
  samples_before_job_ = at.consumed_samples;
  run_.progress.skipped_samples = at.skipped_samples;
  run_.progress.evaluated[data::Split::valid] = at.valid_samples;
  run_.progress.evaluated[data::Split::test] = at.test_samples;
  const Curriculum& curriculum = run_.progress.curriculum;
  const BatchSchedule& batches = run_.progress.batches;
  const std::int64_t sequence = config_.model.sequence;
  run_.progress.consumed_tokens = at.consumed_tokens.value_or(at.consumed_samples * sequence);
  if (at.consumed_samples != batches.consumed_after(at.step) ||
      run_.progress.consumed_tokens != curriculum.tokens_after(batches, at.step))
    run_.progress.steps = steps_after(at);
  if (!config_.checkpoint.load_optimizer) return;
  run_.progress.learned = {at.learned_samples, at.learned_tokens.value_or(at.learned_samples * sequence)};
  if (run_.replica.scaler() && at.loss_scale)
    run_.replica.scaler()->restore({*at.loss_scale, at.scale_clean, at.scale_patience});
  if (config_.rate.resume != SchedulerSource::checkpoint) return;
  run_.progress.schedules = facts.schedules;
}

// The batch was another one before, or samples were longer: a length in samples or tokens is other steps now.
std::int64_t Checkpointing::steps_after(const RunPosition& at) const {
  const LengthConfig& length = config_.length;
  if (length.iterations <= 0 && length.samples <= 0 && length.tokens <= 0) return at.step;
  const auto end = [](std::int64_t given) {
    return given > 0 ? given : std::numeric_limits<std::int64_t>::max();
  };
  const std::int64_t last =
      config_.batch.schedule.empty() ? run_.progress.batches.at(std::numeric_limits<std::int64_t>::max()) : 0;
  std::int64_t steps = at.step, consumed = at.consumed_samples, tokens = run_.progress.consumed_tokens;
  while (consumed < end(length.samples) && tokens < end(length.tokens) && steps < end(length.iterations)) {
    const std::int64_t batch = run_.progress.batches.at(consumed);
    // As BatchSchedule::steps_for(): what is too little for a whole step of the last batch is left.
    if (batch == last && batch > end(length.samples) - consumed) break;
    ++steps;
    consumed += batch;
    tokens += run_.progress.curriculum.tokens_at(steps, batch);
  }
  return steps;
}

RunFacts Checkpointing::facts_after(std::int64_t step) {
  RunFacts out{.run = position_,
               .layout = {.tp = config_.parallel.tp,
                          .cp = config_.parallel.cp,
                          .dp = sample_ranks(config_.parallel),
                          .pp = config_.parallel.pp},
               .tokenizer = tokenizer_,
               .schedules = run_.progress.schedules,
               .configuration = config_};
  RunPosition& at = out.run;
  at.step = step;
  at.last_batch = run_.progress.last_batch;
  at.consumed_samples = run_.stepper.consumed();
  at.learned_samples = run_.progress.learned.samples;
  at.consumed_tokens = run_.progress.consumed_tokens;
  at.learned_tokens = run_.progress.learned.tokens;
  at.skipped_samples = run_.progress.skipped_samples;
  at.valid_samples = run_.progress.evaluated[data::Split::valid];
  at.test_samples = run_.progress.evaluated[data::Split::test];
  at.optimizer = config_.checkpoint.save_optimizer;
  at.schedules = true;
  at.updates = run_.replica.optimizer().updates();
  at.loss_scale.reset();
  if (const LossScaler* scaler = run_.replica.scaler()) {
    const LossScaler::State state = scaler->state();
    at.loss_scale = state.scale;
    at.scale_clean = state.clean;
    at.scale_patience = state.patience;
  }
  at.seed.reset();
  if (config_.checkpoint.save_random) at.seed = config_.run.seed;
  if (config_.checkpoint.verify) out.witness = run_.verifier.witness(at);
  return out;
}

void Checkpointing::save(std::int64_t step) {
  if (!saver_ || saved_at_ == step) return;
  saved_at_ = step;
  // Who goes on from here tells no more of the steps before: what was told of them must not die with this
  // run.
  if (lent_.outlet) lent_.outlet->drain();
  read_at_save_[step] = {run_.stepper.consumed(), run_.progress.consumed_tokens};
  const bool validated = run_.progress.validated && run_.progress.validated->step == step;
  if (validated) {
    position_.validated_steps.push_back(step);
    position_.validated_losses.push_back(run_.progress.validated->loss);
  }
  SaveOrder order{.step = step, .facts = to_json(facts_after(step)), .mine = {}};
  order.mine = named_to_save(run_.replica.weights(), run_.replica.optimizer(),
                             config_.checkpoint.save_optimizer ? ToSave::all : ToSave::weights);
  if (config_.checkpoint.save_optimizer)
    for (checkpoint::Named& scales : run_.replica.fp8().named()) order.mine.push_back(std::move(scales));
  order.ranked = ranked(position_);
  saver_->save(std::move(order));
}

void Checkpointing::save_if_due(std::int64_t step, bool last) {
  if (!saver_) return;
  saver_->look();
  const std::int64_t interval = config_.checkpoint.interval;
  if (last || (interval > 0 && step % interval == 0)) save(step);
  tell_saved();
}

Saver* Checkpointing::wants_record_of(std::int64_t step) const {
  return config_.checkpoint.verify && saver_ && saved_at_ == step - 1 ? saver_.get() : nullptr;
}

// In the background a save ends at some later step.
void Checkpointing::tell_saved() {
  const std::int64_t step = saver_->last_saved().value_or(0);
  if (!lent_.outlet || step == told_saved_) return;
  told_saved_ = step;
  const Read& read = read_at_save_.at(step);
  lent_.outlet->write(report::Saved{.iteration = step,
                                    .flops = flops_of(step, read.samples),
                                    .flops_before_job = flops_of(position_.step, samples_before_job_),
                                    .tokens = double(read.tokens)});
}

// Of a batch that was another one before, by what today's would have read.
double Checkpointing::flops_of(std::int64_t steps, std::int64_t samples) const {
  const BatchSchedule& batches = run_.progress.batches;
  double flops = 0;
  run_.progress.curriculum.each_stretch(batches, steps, [&](const data::Rows& rows) {
    flops += double(rows.count) * training_flops(config_.model, rows.length);
  });
  const std::int64_t usual = batches.consumed_after(steps);
  return usual > 0 ? flops * (double(samples) / double(usual)) : 0;
}

Ending Checkpointing::ended(Ending how) {
  if (how != Ending::finished && tells())
    lent_.log.info(text("the run stops before its end: ", reason_of(how)));
  if (!saver_) return how;
  saver_->settle();
  tell_saved();
  return saver_->failed() ? Ending::unsaved : how;
}

}  // namespace weft
