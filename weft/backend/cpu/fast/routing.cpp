// Experts for tokens: a few numbers a token, so plain loops of floats, each token for itself.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::me;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float least_sum = 1e-20F;
constexpr std::int64_t worth = 16;  // an exponential, in additions

float softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float score_of(float x, RouterScore score) {
  return score == RouterScore::sigmoid ? sigmoid(x) : std::sqrt(softplus(x));
}
float slope_of(float x, RouterScore score) {
  const float s = sigmoid(x);
  return score == RouterScore::sigmoid ? s * (1 - s) : s / (2 * std::sqrt(softplus(x)));
}

/// to = exp(x - max) / sum; returns log of the sum of exp(x). to may be x.
float softmax_of(float* to, const float* x, std::int64_t n) {
  const float max = *std::max_element(x, x + n);
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += to[i] = std::exp(x[i] - max);
  for (std::int64_t i = 0; i < n; ++i) to[i] /= sum;
  return max + std::log(sum);
}

float sum_of(const float* x, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

/// places of the k greatest of n, of equal ones the lower; a NaN counts as the greatest.
void greatest(const float* x, std::int64_t n, std::int32_t* places, std::int64_t k) {
  const auto rank = [&](std::int64_t i) { return std::isnan(x[i]) ? infinity : x[i]; };
  std::int64_t held = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (held == k && !(rank(i) > rank(places[k - 1]))) continue;
    std::int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && rank(i) > rank(places[at - 1]); --at) places[at] = places[at - 1];
    places[at] = std::int32_t(i);
  }
}

/// One token's choice, with room for its numbers.
struct Choice {
  const RouteArgs& how;
  std::int64_t e, k;
  float *scores, *compared, *sums;  // [e] each
  std::int32_t* few;                // [e]

  void score(const float* logits) const {
    if (how.score == RouterScore::softmax && !how.softmax_first)
      std::copy_n(logits, e, scores);
    else if (how.score == RouterScore::softmax)
      softmax_of(scores, logits, e);
    else
      for (std::int64_t i = 0; i < e; ++i) scores[i] = score_of(logits[i], how.score);
  }
  void keep_groups() const {
    if (how.groups == 0) return;
    const std::int64_t each = e / how.groups, best = k / how.groups_kept;
    for (std::int64_t g = 0; g < how.groups; ++g) {
      greatest(compared + g * each, each, few, best);
      sums[g] = 0;
      for (std::int64_t i = 0; i < best; ++i) sums[g] += compared[g * each + few[i]];
    }
    greatest(sums, how.groups, few, how.groups_kept);
    for (std::int64_t g = 0; g < how.groups; ++g)
      if (std::find(few, few + how.groups_kept, std::int32_t(g)) == few + how.groups_kept)
        std::fill_n(compared + g * each, each, -infinity);
  }
  void choose(const float* logits, const float* bias, float* weights, std::int32_t* experts) const {
    score(logits);
    for (std::int64_t i = 0; i < e; ++i) compared[i] = scores[i] + (bias ? bias[i] : 0);
    keep_groups();
    greatest(compared, e, experts, k);
    for (std::int64_t i = 0; i < k; ++i) weights[i] = scores[experts[i]];
    if (how.score == RouterScore::softmax && !how.softmax_first) softmax_of(weights, weights, k);
    const bool divided = how.score != RouterScore::softmax && k > 1;
    const float sum = divided ? sum_of(weights, k) + least_sum : 1;
    for (std::int64_t i = 0; i < k; ++i) weights[i] = weights[i] / sum * how.scaling;
  }
  /// d += the derivative
  void differentiate(float* d, const float* dweights, const float* logits,
                     const std::int32_t* experts) const {
    score(logits);
    const bool all = how.score == RouterScore::softmax && how.softmax_first;
    const bool few_only = how.score == RouterScore::softmax && !all;
    float* chosen = compared;
    for (std::int64_t i = 0; i < k; ++i) chosen[i] = scores[experts[i]];
    if (few_only) softmax_of(chosen, chosen, k);
    const bool divided = !all && !few_only && k > 1;
    const float sum = divided ? sum_of(chosen, k) + least_sum : 1;
    float along = 0;
    if (all || few_only || divided)
      for (std::int64_t i = 0; i < k; ++i) along += how.scaling * dweights[i] * chosen[i] / sum;
    if (all)
      for (std::int64_t j = 0; j < e; ++j) d[j] -= scores[j] * along;
    for (std::int64_t i = 0; i < k; ++i) {
      const float given = how.scaling * dweights[i];
      const std::int32_t to = experts[i];
      if (all)
        d[to] += chosen[i] * given;
      else if (few_only)
        d[to] += chosen[i] * (given - along);
      else
        d[to] += slope_of(logits[to], how.score) * (given - along) / sum;
    }
  }
};

/// Room for a Choice of every thread.
class Room {
 public:
  Room(fast::Scratch& floats, int threads, std::int64_t e)
      : each_(4 * e), first_(floats.take<float>(threads * each_)) {}
  Choice choice(const RouteArgs& how, std::int64_t e, std::int64_t k) const {
    float* mine = first_ + me() * each_;
    return {how, e, k, mine, mine + e, mine + 2 * e, reinterpret_cast<std::int32_t*>(mine + 3 * e)};
  }

 private:
  std::int64_t each_;
  float* first_;
};

/// scores [e] that add up to one; returns what they were divided by.
float balance_scores(float* scores, const float* logits, std::int64_t e, RouterScore score) {
  if (score == RouterScore::softmax) {
    softmax_of(scores, logits, e);
    return 1;
  }
  for (std::int64_t i = 0; i < e; ++i) scores[i] = score_of(logits[i], score);
  const float sum = sum_of(scores, e) + least_sum;
  for (std::int64_t i = 0; i < e; ++i) scores[i] /= sum;
  return sum;
}

}  // namespace

void FastKernels::route(const Routed& out, const Tensor& logits, const Tensor& bias, const RouteArgs& how) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1), k = out.experts.dim(1);
  const auto* from = logits.data<float>();
  const auto* added = bias ? bias.data<float>() : nullptr;
  auto* weights = out.weights.data<float>();
  auto* experts = out.experts.data<std::int32_t>();
  const Room room(scratch_, threads_, e);
  in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
    const Choice choice = room.choice(how, e, k);
    for (std::int64_t i = first; i < last; ++i)
      choice.choose(from + i * e, added, weights + i * k, experts + i * k);
  });
}

void FastKernels::route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                                 const Routed& routed, const RouteArgs& how) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1), k = routed.experts.dim(1);
  auto* to = dlogits.data<float>();
  const auto *from = logits.data<float>(), *given = dweights.data<float>();
  const auto* experts = routed.experts.data<std::int32_t>();
  const Room room(scratch_, threads_, e);
  in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
    const Choice choice = room.choice(how, e, k);
    for (std::int64_t i = first; i < last; ++i)
      choice.differentiate(to + i * e, given + i * k, from + i * e, experts + i * k);
  });
}

void FastKernels::count_experts(const Tensor& counts, const Tensor& experts) {
  const std::int64_t b = counts.dim(0), e = counts.dim(1), k = experts.dim(1);
  auto* to = counts.data<float>();
  const auto* chosen = experts.data<std::int32_t>();
  std::fill_n(to, b * e, 0.0F);
  for (std::int64_t i = 0; i < experts.elements(); ++i)
    if (chosen[i] >= 0) ++to[i / k % b * e + chosen[i]];
}

void FastKernels::balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                          const Tensor& factors, RouterScore score, float scale) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1), b = factors.dim(0);
  auto* sums = terms.data<float>();
  auto* to = dlogits ? dlogits.data<float>() : nullptr;
  const auto *from = logits.data<float>(), *table = factors.data<float>();
  auto* room = scratch_.take<float>(threads_ * e);
  in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
    float* scores = room + me() * e;
    for (std::int64_t i = first; i < last; ++i) {
      const float *x = from + i * e, *factor = table + i % b * e;
      const float sum = balance_scores(scores, x, e, score);
      float along = 0;
      for (std::int64_t j = 0; j < e; ++j) along += scores[j] * factor[j];
      sums[i] = along;
      if (!to) continue;
      for (std::int64_t j = 0; j < e; ++j) {
        const float slope = score == RouterScore::softmax ? scores[j] : slope_of(x[j], score) / sum;
        to[i * e + j] += scale * slope * (factor[j] - along);
      }
    }
  });
}

void FastKernels::square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                                 float scale) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1);
  auto* squares = terms.data<float>();
  auto* to = dlogits ? dlogits.data<float>() : nullptr;
  const auto* from = logits.data<float>();
  auto* room = scratch_.take<float>(threads_ * e);
  in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
    float* parts = room + me() * e;
    for (std::int64_t i = first; i < last; ++i) {
      const float logarithm = softmax_of(parts, from + i * e, e);
      squares[i] = logarithm * logarithm;
      if (!to) continue;
      for (std::int64_t j = 0; j < e; ++j) to[i * e + j] += 2 * scale * logarithm * parts[j];
    }
  });
}

void FastKernels::limit_experts(const Tensor& kept, const Routed& routed, std::int64_t most,
                                DropPolicy policy) {
  const std::int64_t n = kept.elements();
  const auto chosen = routed.experts.as<std::int32_t>();
  const auto* weights = routed.weights.data<float>();
  auto* to = kept.data<std::int32_t>();
  std::copy(chosen.begin(), chosen.end(), to);
  const std::int32_t last = chosen.empty() ? -1 : *std::ranges::max_element(chosen);
  auto* who = scratch_.take<std::int32_t>(n);
  for (std::int32_t e = 0; e <= last; ++e) {
    std::int32_t* end = who;
    for (std::int64_t i = 0; i < n; ++i)
      if (chosen[std::size_t(i)] == e) *end++ = std::int32_t(i);
    if (end - who <= most) continue;
    const auto rank = [&](std::int32_t i) { return std::isnan(weights[i]) ? infinity : weights[i]; };
    const auto before = [&](std::int32_t a, std::int32_t b) {
      return rank(a) != rank(b) ? rank(a) > rank(b) : a < b;
    };
    if (policy == DropPolicy::probs) std::nth_element(who, who + most, end, before);
    std::for_each(who + most, end, [&](std::int32_t i) { to[i] = -1; });
  }
}

void FastKernels::follow_counts(const Tensor& bias, const Tensor& counts, float rate) {
  const auto seen = counts.as<float>();
  const auto sums = bias.as<float>();
  double all = 0;
  for (const float count : seen) all += double(count);
  const double mean = all / double(seen.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (double(seen[i]) != mean) sums[i] += double(seen[i]) < mean ? rate : -rate;
}

void FastKernels::plan_rows(const RowPlan& out, const Tensor& experts) {
  const std::int64_t n = experts.elements(), e = out.counts.dim(0), k = experts.dim(1);
  const auto* chosen = experts.data<std::int32_t>();
  auto *tokens = out.tokens.data<std::int32_t>(), *slots = out.slots.data<std::int32_t>();
  auto* counts = out.counts.data<std::int64_t>();
  std::fill_n(counts, e, 0);
  for (std::int64_t i = 0; i < n; ++i)
    if (chosen[i] >= 0) ++counts[chosen[i]];
  auto* next = scratch_.take<std::int64_t>(e + 1);
  next[0] = 0;
  for (std::int64_t j = 0; j < e; ++j) next[j + 1] = next[j] + counts[j];
  for (std::int64_t i = next[e]; i < n; ++i) tokens[i] = slots[i] = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    if (chosen[i] < 0) continue;
    const std::int64_t at = next[chosen[i]]++;
    tokens[at] = std::int32_t(i / k);
    slots[at] = std::int32_t(i);
  }
}

}  // namespace weft
