// DeepSpeed's schedules of the learning rate. Their count stands one behind while they warm up and decay in a
// line: steps 1 and 2 run at the same rate, but under warmup_cosine_lr, whose first step learns nothing.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "weft/optim/rate.h"

namespace weft {
namespace {

struct Warmup {
  double steps, end;  // of warm-up, and of decay
  explicit Warmup(const RateSchedule& s)
      : steps(std::max(2.0, s.warmup / double(s.step))), end(double(s.decay) / double(s.step)) {}
  double decay_steps() const { return std::max(1.0, end - steps); }
};

/// From 0 to 1, when `count` of the steps are over.
double warmed(WarmupCurve curve, double count, double steps) {
  return curve == WarmupCurve::linear ? count / steps : 1.0 / std::log(steps) * std::log(count + 1);
}

double warmed_and_decayed(const RateSchedule& s, double finished) {
  const Warmup warmup(s);
  const double count = finished - 1;
  if (count < 0) return s.style == RateStyle::warmup_cosine_lr ? 0 : s.start;
  if (count < warmup.steps) return s.start + (s.peak - s.start) * warmed(s.warmup_curve, count, warmup.steps);
  if (s.style == RateStyle::warmup_lr) return s.peak;
  if (s.style == RateStyle::warmup_decay_lr)
    return s.start + (s.peak - s.start) * std::max(0.0, (warmup.end - count) / warmup.decay_steps());
  const double part = std::min(1.0, (count - warmup.steps + 1) / warmup.decay_steps());
  return s.floor + (s.peak - s.floor) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double steps_of(const RateCycle& c) { return double(c.up) + double(c.down.value_or(c.up)); }

/// How many decays the steps after the cycle are.
double decays(const RateCycle& c, double finished) {
  return c.decay_steps == 0 ? 0 : (finished - steps_of(c)) / double(c.decay_steps);
}

/// How far up the cycle is, from 0 to 1 and back.
double height(const RateCycle& c, double finished) {
  const double up = double(c.up), whole = steps_of(c);
  const double at = std::fmod(finished, whole);
  const bool rises = at <= up;
  const double stairs = double(rises ? c.stairs_up : c.stairs_down.value_or(c.stairs_up));
  const double way = rises ? at : whole - at, length = rises ? up : whole - up;
  return stairs > 0 ? std::floor(way * stairs / length) / stairs : way / length;
}

double cycled(const RateSchedule& s, double finished) {
  const RateCycle& c = s.cycle;
  if (finished > steps_of(c)) return s.start / (1 + c.decay * decays(c, finished));
  return s.start + (s.peak - s.start) * height(c, finished);
}

// DeepSpeed's first step has the least, like a step at the peak.
double momentum(const RateCycle& c, double finished) {
  if (finished < 1) return c.least_momentum;
  if (finished > steps_of(c)) return c.most_momentum * (1 + c.momentum_growth * decays(c, finished));
  return c.most_momentum - (c.most_momentum - c.least_momentum) * height(c, finished);
}

double climbed(const RateSchedule& s, double finished) {
  const double parts = finished / double(s.climb.steps);
  return s.peak * (1 + s.climb.growth * (s.climb.stairs ? std::floor(parts) : parts));
}

}  // namespace

std::optional<Betas> RateSchedule::betas_at(std::int64_t n) const {
  if (style != RateStyle::one_cycle || !cycle.momentum) return std::nullopt;
  return Betas{momentum(cycle, double(n) / double(step)), RateCycle::second_beta};
}

double RateSchedule::after_steps(double finished) const {
  if (style == RateStyle::one_cycle) return cycled(*this, finished);
  return style == RateStyle::lr_range_test ? climbed(*this, finished) : warmed_and_decayed(*this, finished);
}

}  // namespace weft
