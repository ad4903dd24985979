// Iterations, samples and tokens to one unit.
#include "weft/train/schedules.h"

#include <cmath>

namespace weft {
namespace {

std::int64_t first_given(std::int64_t a, std::int64_t b) { return a > 0 ? a : b; }

// In samples: how long decay, warm-up and the last part are when nothing was said in tokens.
RateSchedule in_samples(const TrainConfig& c, std::int64_t steps) {
  const RateConfig& r = c.rate;
  const std::int64_t batch = c.batch.global;
  const std::int64_t whole = c.length.samples > 0 ? c.length.samples : steps * batch;
  RateSchedule s;
  s.decay = first_given(r.decay_samples, first_given(r.decay_iterations * batch, whole));
  s.warmup = first_given(r.warmup_samples, r.warmup_iterations * batch);
  if (r.warmup_fraction) s.warmup = std::int64_t(*r.warmup_fraction * double(s.decay));
  s.anneal = first_given(r.anneal_samples, r.anneal_iterations * batch);
  return s;
}

}  // namespace

RatePlan rate_plan(const TrainConfig& c, std::int64_t steps) {
  const RateConfig& r = c.rate;
  RatePlan plan{in_samples(c, steps), 1};
  RateSchedule& s = plan.schedule;
  if (r.decay_tokens > 0 || r.warmup_tokens > 0) {
    plan.unit = c.model.sequence;
    s.decay = first_given(r.decay_tokens, s.decay * plan.unit);
    s.warmup = first_given(r.warmup_tokens, s.warmup * plan.unit);
    if (r.warmup_fraction) s.warmup = std::int64_t(*r.warmup_fraction * double(s.decay));
    s.anneal *= plan.unit;
  }
  s.style = r.style;
  s.anneal_style = r.anneal_style;
  s.start = r.start;
  s.peak = r.peak.value_or(0);
  s.floor = r.floor;
  return plan;
}

RatePlan scaled(RatePlan plan, double factor) {
  plan.schedule.peak *= factor;
  plan.schedule.floor *= factor;
  return plan;
}

double width_factor(const TrainConfig& c) {
  const double width = width_of(c.model);
  return c.optimizer.kind == OptimizerKind::sgd ? width : 1 / width;
}

// Words are vectors to muP, one of each model's width for every word: sgd scales their rate too.
RatePlan embedding_rate_plan(const TrainConfig& c, std::int64_t steps) {
  RatePlan plan = rate_plan(c, steps);
  const bool follows = c.optimizer.kind == OptimizerKind::sgd && !c.rate.embedding_peak;
  if (follows) plan = scaled(plan, width_factor(c));
  plan.schedule.peak = c.rate.embedding_peak.value_or(plan.schedule.peak);
  plan.schedule.floor = c.rate.embedding_floor.value_or(plan.schedule.floor);
  return plan;
}

DecaySchedule decay_plan(const TrainConfig& c, std::int64_t steps) {
  const OptimizerConfig& o = c.optimizer;
  const std::int64_t whole = c.length.samples > 0 ? c.length.samples : steps * c.batch.global;
  return {.growth = o.weight_decay_growth,
          .start = o.weight_decay_start.value_or(o.weight_decay),
          .end = o.weight_decay_end.value_or(o.weight_decay),
          .length = whole};
}

}  // namespace weft
