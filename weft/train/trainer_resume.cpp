// The trainer's side of checkpoints: what it says about itself, and taking itself up again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/model/count.h"
#include "weft/optim/norms.h"
#include "weft/train/keep_tokenizer.h"
#include "weft/train/resume.h"
#include "weft/train/resume_weights.h"
#include "weft/train/trainer.h"

namespace weft {
namespace {

/// The saved steps of the lowest validation loss.
std::vector<std::int64_t> best_of(const RunPosition& run, int count) {
  std::vector<std::pair<double, std::int64_t>> order;
  for (std::size_t i = 0; i < run.validated_steps.size(); ++i)
    if (!std::isnan(run.validated_losses[i]))
      order.emplace_back(run.validated_losses[i], run.validated_steps[i]);
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < order.size() && i < std::size_t(count); ++i) out.push_back(order[i].second);
  return out;
}

}  // namespace

void Trainer::open_checkpoints() {
  const CheckpointConfig& k = config_.checkpoint;
  std::vector<std::int64_t> passed_over;
  if (!k.load.empty() || !k.pretrained.empty()) passed_over = take_up();
  if (k.save.empty()) return;
  const FileSystem& files = lent_.files != nullptr ? *lent_.files : disk();
  saver_ = std::make_unique<Saver>(k, lent_.mesh.world(), lent_.log, files);
  if (lent_.mesh.world().rank() == 0) saver_->keep(keep_tokenizer(tokenizer_));
  must_not_mix_runs(k, first_step_ - 1, passed_over, lent_.mesh.world());
}

std::vector<std::int64_t> Trainer::take_up() {
  Resumed found = resume({.config = config_,
                          .weights = replica_.weights(),
                          .optimizer = replica_.optimizer(),
                          .world = lent_.mesh.world(),
                          .schedules = {rate_, ends_rate_, decay_},
                          .tokenizer = tokenizer_});
  const bool tells = lent_.mesh.world().rank() == 0;
  for (const std::string& notice : found.notices)
    if (tells) lent_.log.warning(notice);
  if (!found.facts) return {};
  if (tells)
    lent_.log.info(found.weights_only
                       ? fmt::format("weights from {}; the run starts at step 0", found.from.string())
                       : fmt::format("resumed from {}: step {}, {} samples consumed", found.from.string(),
                                     found.facts->run.step, found.facts->run.consumed_samples));
  if (!found.weights_only) {
    restore(*found.facts);
    if (config_.checkpoint.verify) expect_replay(*found.facts, found.from.string());
  }
  return found.passed_over;
}

void Trainer::restore(const RunFacts& facts) {
  const RunPosition& at = facts.run;
  position_ = at;
  first_step_ = at.step + 1;
  if (feed_) feed_->seek(at.consumed_samples);  // none where training is skipped
  samples_before_job_ = at.consumed_samples;
  skipped_samples_ = at.skipped_samples;
  evaluated_[data::Split::valid] = at.valid_samples;
  evaluated_[data::Split::test] = at.test_samples;
  if (at.consumed_samples != batches_.consumed_after(at.step)) steps_ = steps_after(at);
  if (!config_.checkpoint.load_optimizer) return;
  learned_samples_ = at.learned_samples;
  if (replica_.scaler() && at.loss_scale)
    replica_.scaler()->restore({*at.loss_scale, at.scale_clean, at.scale_patience});
  if (config_.rate.resume != SchedulerSource::checkpoint) return;
  rate_ = facts.schedules.rate;
  ends_rate_ = facts.schedules.ends;
  decay_ = facts.schedules.decay;
}

// The batch was another one before: a length in samples or tokens is other steps now.
std::int64_t Trainer::steps_after(const RunPosition& at) const {
  const LengthConfig& length = config_.length;
  std::int64_t samples = length.samples > 0 ? length.samples : std::numeric_limits<std::int64_t>::max();
  if (length.tokens > 0)
    samples = std::min(samples, (length.tokens + config_.model.sequence - 1) / config_.model.sequence);
  std::int64_t steps = at.step;
  const std::int64_t most =
      length.iterations > 0 ? length.iterations : std::numeric_limits<std::int64_t>::max();
  for (std::int64_t consumed = at.consumed_samples; consumed < samples && steps < most; ++steps)
    consumed += batches_.at(consumed);
  return steps;
}

RunFacts Trainer::facts_after(std::int64_t step) {
  RunFacts out{.run = position_,
               .layout = {.tp = config_.parallel.tp,
                          .cp = config_.parallel.cp,
                          .dp = config_.parallel.dp,
                          .pp = config_.parallel.pp},
               .tokenizer = tokenizer_,
               .schedules = {rate_, ends_rate_, decay_},
               .configuration = config_};
  RunPosition& at = out.run;
  at.step = step;
  at.consumed_samples = feed_->consumed();
  at.learned_samples = learned_samples_;
  at.skipped_samples = skipped_samples_;
  at.valid_samples = evaluated_[data::Split::valid];
  at.test_samples = evaluated_[data::Split::test];
  at.optimizer = config_.checkpoint.save_optimizer;
  at.updates = replica_.optimizer().updates();
  at.loss_scale.reset();
  if (const LossScaler* scaler = replica_.scaler()) {
    const LossScaler::State state = scaler->state();
    at.loss_scale = state.scale;
    at.scale_clean = state.clean;
    at.scale_patience = state.patience;
  }
  at.seed.reset();
  if (config_.checkpoint.save_random) at.seed = config_.run.seed;
  if (config_.checkpoint.verify) out.witness = witness(at);
  return out;
}

void Trainer::save(std::int64_t step) {
  if (!saver_ || saved_at_ == step) return;
  saved_at_ = step;
  samples_at_save_[step] = feed_->consumed();
  const bool validated = validated_ && validated_->step == step;
  if (validated) {
    position_.validated_steps.push_back(step);
    position_.validated_losses.push_back(validated_->loss);
  }
  SaveOrder order{.step = step, .facts = to_json(facts_after(step)), .mine = {}};
  order.mine =
      named_to_save(replica_.weights(), config_.checkpoint.save_optimizer ? &replica_.optimizer() : nullptr);
  order.best = best_of(position_, config_.checkpoint.keep_best);
  saver_->save(std::move(order));
}

void Trainer::save_if_due(std::int64_t step, bool last) {
  if (!saver_) return;
  saver_->look();
  const std::int64_t interval = config_.checkpoint.interval;
  if (last || (interval > 0 && step % interval == 0)) save(step);
  tell_saved();
}

// In the background a save ends at some later step.
void Trainer::tell_saved() {
  const std::int64_t step = saver_->last_saved().value_or(0);
  if (!lent_.outlet || step == told_saved_) return;
  told_saved_ = step;
  const double flops = training_flops(config_.model, config_.model.sequence);
  const double samples = double(samples_at_save_.at(step));
  lent_.outlet->write(report::Saved{.iteration = step,
                                    .flops = flops * samples,
                                    .flops_before_job = flops * double(samples_before_job_),
                                    .tokens = samples * double(config_.model.sequence)});
}

Ending Trainer::ended(Ending how) {
  if (how != Ending::finished && lent_.mesh.world().rank() == 0)
    lent_.log.info(how == Ending::asked
                       ? "the run stops before its end: a signal or --exit-interval asked for it"
                       : "the run stops before its end: --exit-duration-in-mins is over");
  if (!saver_) return how;
  saver_->settle();
  tell_saved();
  return saver_->failed() ? Ending::unsaved : how;
}

RunWitness Trainer::witness(const RunPosition& at) {
  if (at.last_batch == 0) return {};
  const auto train = data_.sets[data::Split::train];
  data::Turn turn = turn_at(at.consumed_samples - at.last_batch);
  turn.global_batch = int(at.last_batch);
  Feed feed(train, run_sampler(config_, train->size()), feed_place(), at.consumed_samples - at.last_batch);
  const Evaluation sums = evaluated(feed, turn, 1).value();
  return {.loss = sums.tokens > 0 ? sums.loss_sum / sums.tokens : 0,
          .weights_norm = global_norm(replica_.weights(), Look::masters)};
}

void Trainer::verify(const RunFacts& facts, const std::string& from) {
  if (!facts.witness.loss)
    fail(Kind::usage, "--verify-resume: ", from,
         " says nothing to compare with: --verify-resume was not given when it was saved");
  const RunWitness now = witness(facts.run);
  const double allowed = rounding_between(facts);
  const double loss_off = std::abs(*now.loss - *facts.witness.loss);
  const double norm_off = std::abs(*now.weights_norm - *facts.witness.weights_norm);
  if (!(loss_off <= allowed * std::abs(*facts.witness.loss)) ||
      !(norm_off <= allowed * std::abs(*facts.witness.weights_norm)))
    fail(Kind::data,
         fmt::format("--verify-resume: {}: the last batch has loss {:.17g}, and {:.17g} when it was saved; "
                     "the weights have norm {:.17g}, and {:.17g} when they were saved",
                     from, *now.loss, *facts.witness.loss, *now.weights_norm, *facts.witness.weights_norm));
  if (lent_.mesh.world().rank() == 0)
    lent_.log.info(fmt::format("verified: the last batch has loss {:.9g} again, {}", *now.loss,
                               allowed == 0 ? "every bit equal" : "equal to rounding under another layout"));
}

}  // namespace weft
