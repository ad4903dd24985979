// A step is addressed by its number and the samples before it.
#include "weft/train/stepper.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/train/run_data.h"
#include "weft/train/stages.h"

namespace weft {

Progress progress_of(const TrainConfig& config) {
  BatchSchedule batches(config.batch, config.parallel.dp, config.model.sequence);
  const std::int64_t steps = steps_of(config, batches);
  return {
      .batches = std::move(batches),
      .schedules = {rate_plan(config, steps), embedding_rate_plan(config, steps), decay_plan(config, steps)},
      .steps = steps};
}

StepSettings step_settings(const TrainConfig& config, const ProcessMesh& mesh) {
  const std::int64_t rows = rows_of_a_pass(config.model, config.batch);
  return {.order = {.seed = std::uint64_t(config.run.seed),
                    .clip = config.optimizer.clip,
                    .per_token = config.batch.per_token_loss,
                    .together = int(config.batch.micro / rows),
                    .count_zeros = config.log.zeros,
                    .params_norm = config.log.params_norm},
          .turn = {.micro_batch = int(rows),
                   .rank = mesh.place(Axis::dp),
                   .ranks = mesh.layout().degree(Axis::dp),
                   .owners = owners_of(config.model)},
          .width_factor = width_factor(config),
          .guard = config.guard,
          .tells = mesh.world().rank() == 0,
          .scale_moves = config.model.precision == Precision::f16 && !config.scaling.constant};
}

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
  order.rate = progress_.schedules.rate.at(progress_.learned_samples);
  order.ends_rate = progress_.schedules.ends.at(progress_.learned_samples);
  order.width_rate = scaled(progress_.schedules.rate, settings_.width_factor).at(progress_.learned_samples);
  order.decay = progress_.schedules.decay.at(progress_.learned_samples);
  return order;
}

bool Stepper::skips(std::int64_t step) const {
  const auto& left_out = settings_.guard.skip_iterations;
  return std::ranges::find(left_out, step) != left_out.end();
}

void Stepper::seek(std::int64_t consumed) {
  if (feed_) feed_->seek(consumed);
}

StepReport Stepper::step(std::int64_t step, StepTimers* timers, NotFinite trouble) {
  const data::SampleTurn turn = turn_at(feed_->consumed());
  Laps laps(timers && timers->level() > 1 ? timers : nullptr);
  const std::span<const Batch> batches = feed_->next(turn);
  laps.end(StepPart::batch_generator);
  progress_.last_batch = turn.global_batch;
  if (skips(step)) {
    progress_.skipped_samples += turn.global_batch;
    return {.applied = false};
  }
  StepOrder order = order_of(step);
  order.timers = timers;
  order.fault = fault_is_injected(step, Trial::first) && !is_checked(step);
  StepReport report = is_checked(step) ? checked(order, batches) : replica_.step(batches, order);
  if (!report.applied && trouble == NotFinite::looked_for) report = not_finite(step, report, batches);
  if (report.applied) progress_.learned_samples += turn.global_batch;
  return report;
}

}  // namespace weft
