#include "weft/optim/rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft {
namespace {

double annealed(AnnealStyle style, double y) {
  switch (style) {
    case AnnealStyle::exponential:
      return 2.0 * std::pow(0.5, y) - 1.0;
    case AnnealStyle::linear:
      return 1.0 - y;
    case AnnealStyle::cosine:
      return 0.5 * (std::cos(std::numbers::pi * y) + 1.0);
    case AnnealStyle::minus_sqrt:
      return 1.0 - std::sqrt(y);
  }
  return 0.0;
}

// How much of (peak - floor) is left after warm-up, at x = (n - warmup) / (decay - warmup).
double remaining(const RateSchedule& s, std::int64_t n) {
  if (s.style == RateStyle::wsd) {
    const std::int64_t from = s.decay - s.anneal;
    return n <= from ? 1.0 : annealed(s.anneal_style, double(n - from) / double(s.anneal));
  }
  const double x = (double(n) - s.warmup) / (double(s.decay) - s.warmup);
  return s.style == RateStyle::linear ? 1.0 - x : 0.5 * (std::cos(std::numbers::pi * x) + 1.0);
}

}  // namespace

double RateSchedule::at(std::int64_t n) const {
  if (counts_steps(style)) return after_steps(double(n) / double(step));
  if (warmup > 0 && double(n) <= warmup) return start + (peak - start) * double(n) / warmup;
  if (style == RateStyle::constant) return peak;
  if (n > decay) return floor;
  if (style == RateStyle::inverse_square_root) {
    const double w = std::max(warmup, 1.0), t = double(std::max<std::int64_t>(n, 1));
    return std::max(floor, peak * std::sqrt(w) / std::sqrt(t));
  }
  return floor + remaining(*this, n) * (peak - floor);
}

double DecaySchedule::at(std::int64_t n) const {
  if (n >= length || growth == DecayGrowth::constant) return end;
  const double q = double(n) / double(length);
  const double grown =
      growth == DecayGrowth::linear ? q : 0.5 * (std::cos(std::numbers::pi * (1.0 - q)) + 1.0);
  return start + grown * (end - start);
}

}  // namespace weft
