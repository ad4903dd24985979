// DeepSpeed's schedules of the learning rate. Their count stands one behind while they warm up and decay in a
// line: steps 1 and 2 run at the same rate, but under warmup_cosine_lr, whose first step learns nothing.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/optim/rate.h"

namespace weft {
namespace {

struct Warmup {
  double steps, end;  // of warm-up, and of decay
  explicit Warmup(const RateSchedule& s)
      : steps(std::max(2.0, double(s.warmup) / double(s.step))), end(double(s.decay) / double(s.step)) {}
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

double cycled(const RateSchedule& s, double finished) {
  const RateCycle& c = s.cycle;
  const double up = double(c.up), down = double(c.down.value_or(c.up)), whole = up + down;
  if (finished > whole) {
    if (c.decay_steps == 0) return s.start;
    return s.start / (1 + c.decay * (finished - whole) / double(c.decay_steps));
  }
  const double at = std::fmod(finished, whole);
  const bool rises = at <= up;
  const double stairs = double(rises ? c.stairs_up : c.stairs_down.value_or(c.stairs_up));
  const double way = rises ? at : whole - at, length = rises ? up : down;
  const double part = stairs > 0 ? std::floor(way * stairs / length) / stairs : way / length;
  return s.start + (s.peak - s.start) * part;
}

double climbed(const RateSchedule& s, double finished) {
  const double parts = finished / double(s.climb.steps);
  return s.peak * (1 + s.climb.growth * (s.climb.stairs ? std::floor(parts) : parts));
}

}  // namespace

double RateSchedule::after_steps(double finished) const {
  if (style == RateStyle::one_cycle) return cycled(*this, finished);
  return style == RateStyle::lr_range_test ? climbed(*this, finished) : warmed_and_decayed(*this, finished);
}

}  // namespace weft
