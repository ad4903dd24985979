// A step is addressed by its number and the samples before it.
#include "weft/train/stepper.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

Stepper::Stepper(StepSettings settings, std::unique_ptr<Feed> feed, Replica& replica, Progress& progress,
                 const Log& log)
    : settings_(std::move(settings)),
      feed_(std::move(feed)),
      replica_(replica),
      progress_(progress),
      log_(log) {}

data::SampleTurn Stepper::turn_at(std::int64_t consumed) const {
  data::SampleTurn turn = settings_.turn;
  turn.global_batch = int(progress_.batches.at(consumed));
  return turn;
}

StepOrder Stepper::order_of(std::int64_t step) const {
  StepOrder order = settings_.order;
  order.step = step;
  if (settings_.one_by_one) order.together *= int(progress_.curriculum.rows_at(step, 1).count);
  const Learned& learned = progress_.learned;
  order.rate = progress_.schedules.rate.at(learned);
  order.ends_rate = progress_.schedules.ends.at(learned);
  order.width_rate = scaled(progress_.schedules.rate, settings_.width_factor).at(learned);
  order.decay = progress_.schedules.decay.at(learned.samples);
  order.betas = progress_.schedules.rate.betas_at(learned);
  return order;
}

bool Stepper::skips(std::int64_t step) const {
  const auto& left_out = settings_.guard.skip_iterations;
  return std::ranges::find(left_out, step) != left_out.end();
}

void Stepper::seek(std::int64_t consumed) {
  if (feed_) feed_->seek(consumed);
}

std::exception_ptr Stepper::trouble_ahead(StepTimers* timers) {
  std::exception_ptr found;
  Laps laps(timers && timers->level() > 1 ? timers : nullptr, replica_.device());
  laps.take(StepPart::batch_generator, [&] { found = feed_->trouble_ahead(turn_at(feed_->consumed())); });
  return found;
}

StepReport Stepper::step(std::int64_t step, StepTimers* timers, NotFinite trouble) {
  consumed_before_ = feed_->consumed();
  tokens_before_ = progress_.consumed_tokens;
  batch_before_ = progress_.last_batch;
  const data::SampleTurn turn = turn_at(consumed_before_);
  const std::int64_t tokens = progress_.curriculum.tokens_at(step, turn.global_batch);
  Laps laps(timers && timers->level() > 1 ? timers : nullptr, replica_.device());
  std::span<const Batch> batches;
  laps.take(StepPart::batch_generator, [&] { batches = feed_->next(turn, excerpt_at(step)); });
  progress_.last_batch = turn.global_batch;
  progress_.consumed_tokens += tokens;
  if (skips(step)) {
    progress_.skipped_samples += turn.global_batch;
    return {.applied = false};
  }
  StepOrder order = order_of(step);
  order.timers = timers;
  if (suspected_) judge(order, batches);
  order.fault = fault_is_injected(step, Trial::first) && !compares(step);
  if (judges() && settings_.guard.spiky_loss) order.most_loss = spikes_.most();
  StepReport report = is_checked(step) ? checked(order, batches)
                      : reports()      ? measured(order, batches)
                                       : replica_.step(batches, order);
  if (report.too_large) report = confirmed(order, StepReport(report), batches);
  if (!report.applied && trouble == NotFinite::looked_for) report = not_finite(step, report, batches);
  if (report.applied) {
    progress_.learned.samples += turn.global_batch;
    progress_.learned.tokens += tokens;
    static_cast<void>(spikes_.look(report.loss()));
  }
  return report;
}

void Stepper::put_back() {
  progress_.last_batch = batch_before_;
  progress_.consumed_tokens = tokens_before_;
  seek(consumed_before_);
}

}  // namespace weft
