// Iterations, samples and tokens to one unit.
#include "weft/train/schedules.h"

#include <cmath>

namespace weft {
namespace {

std::int64_t first_given(std::int64_t a, std::int64_t b) { return a > 0 ? a : b; }

// In samples: how long decay, warm-up and the last part are when nothing was said in tokens.
RateSchedule in_samples(const RateConfig& r, const RunUnits& units) {
  const std::int64_t batch = units.batch, whole = units.samples;
  RateSchedule s;
  s.decay = first_given(r.decay_samples, first_given(r.decay_iterations * batch, whole));
  s.warmup = double(first_given(r.warmup_samples, r.warmup_iterations * batch));
  if (r.warmup_fraction) s.warmup = *r.warmup_fraction * double(s.decay);
  s.anneal = first_given(r.anneal_samples, r.anneal_iterations * batch);
  return s;
}

}  // namespace

RatePlan rate_plan(const RateConfig& r, const RunUnits& units) {
  RatePlan plan{in_samples(r, units), 1};
  RateSchedule& s = plan.schedule;
  if (r.decay_tokens > 0 || r.warmup_tokens > 0) {
    plan.unit = units.sequence;
    s.decay = first_given(r.decay_tokens, s.decay * plan.unit);
    s.warmup = r.warmup_tokens > 0 ? double(r.warmup_tokens) : s.warmup * double(plan.unit);
    if (r.warmup_fraction) s.warmup = *r.warmup_fraction * double(s.decay);
    s.anneal *= plan.unit;
  }
  s.style = r.style;
  s.anneal_style = r.anneal_style;
  s.start = r.start;
  s.peak = r.peak.value_or(0);
  s.floor = r.floor;
  if (counts_steps(r.style)) s.step = units.batch;
  s.warmup_curve = r.warmup_curve;
  s.cycle = r.cycle;
  s.climb = r.climb;
  return plan;
}

RatePlan scaled(RatePlan plan, double factor) {
  plan.schedule.peak *= factor;
  plan.schedule.floor *= factor;
  return plan;
}

double width_factor(OptimizerKind kind, double width) {
  return kind == OptimizerKind::sgd ? width : 1 / width;
}

RatePlan embedding_rate_plan(const RateConfig& r, const RunUnits& units, double factor) {
  RatePlan plan = rate_plan(r, units);
  if (!r.embedding_peak) plan = scaled(plan, factor);
  plan.schedule.peak = r.embedding_peak.value_or(plan.schedule.peak);
  plan.schedule.floor = r.embedding_floor.value_or(plan.schedule.floor);
  return plan;
}

DecaySchedule decay_plan(const OptimizerConfig& o, std::int64_t samples) {
  return {.growth = o.weight_decay_growth,
          .start = o.weight_decay_start.value_or(o.weight_decay),
          .end = o.weight_decay_end.value_or(o.weight_decay),
          .length = samples};
}

}  // namespace weft
