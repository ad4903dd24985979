// Steps at which a length changes are found once, by halving: between two of them nothing is computed.
#include "weft/data/lengths.h"

#include <algorithm>
#include <cmath>

namespace weft::data {
namespace {

constexpr std::int64_t last_step = 1'000'000'000'000'000;

// As DeepSpeed's CurriculumScheduler rounds it; a step behind the last goes on along the curve, up to the
// end.
std::int64_t on_curve(const LengthRule& rule, std::int64_t step) {
  const double root = rule.curve == LengthCurve::fixed_root ? rule.root : 1;
  const double way = std::pow(double(step) / double(rule.steps), 1 / root);
  const double tokens = std::floor(way * double(rule.most - rule.least) + double(rule.least));
  if (tokens >= double(rule.most) + double(rule.multiple)) return rule.most;
  const auto whole = std::int64_t(tokens);
  return std::min(whole - whole % rule.multiple, rule.most);
}

}  // namespace

Lengths::Lengths(const LengthRule& rule) {
  if (rule.curve == LengthCurve::fixed_discrete) {
    // What has once been as long as can be stays so.
    for (std::size_t i = 0; i < rule.lengths.size(); ++i) {
      stairs_.push_back({i == 0 ? 0 : rule.until[i - 1] + 1, rule.lengths[i]});
      if (rule.most > 0 && rule.lengths[i] >= rule.most) return;
    }
  } else if (rule.least >= rule.most) {
    stairs_.push_back({0, rule.most});
  } else {
    climb(rule);
  }
}

void Lengths::climb(const LengthRule& rule) {
  const std::int64_t end = on_curve(rule, last_step);
  for (std::int64_t from = 0;;) {
    const std::int64_t length = on_curve(rule, from);
    stairs_.push_back({from, length});
    if (length == end) return;
    std::int64_t same = from, other = last_step;
    while (other - same > 1) {
      const std::int64_t middle = same + (other - same) / 2;
      (on_curve(rule, middle) == length ? same : other) = middle;
    }
    from = other;
  }
}

const Lengths::Stair& Lengths::stair_of(std::int64_t step) const {
  const auto later = std::ranges::upper_bound(stairs_, step, {}, &Stair::from);
  return later == stairs_.begin() ? stairs_.front() : *std::prev(later);
}

}  // namespace weft::data
