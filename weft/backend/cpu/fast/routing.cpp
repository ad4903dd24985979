// Experts for tokens: a few numbers a token, so plain loops of floats or doubles, each token for itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::me;

namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T least_sum = T(1e-20L);
constexpr std::int64_t worth = 16;  // an exponential, in additions

template <class T>
T softplus(T x) {
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}
template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}
template <class T>
T score_of(T x, RouterScore score) {
  return score == RouterScore::sigmoid ? sigmoid(x) : std::sqrt(softplus(x));
}
template <class T>
T slope_of(T x, RouterScore score) {
  const T s = sigmoid(x);
  return score == RouterScore::sigmoid ? s * (1 - s) : s / (2 * std::sqrt(softplus(x)));
}

/// to = exp(x - max) / sum; returns log of the sum of exp(x). to may be x.
template <class T>
T softmax_of(T* to, const T* x, std::int64_t n) {
  const T max = *std::max_element(x, x + n);
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += to[i] = std::exp(x[i] - max);
  for (std::int64_t i = 0; i < n; ++i) to[i] /= sum;
  return max + std::log(sum);
}

template <class T>
T sum_of(const T* x, std::int64_t n) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

/// places of the k greatest of n, of equal ones the lower; a NaN counts as the greatest.
template <class T>
void greatest(const T* x, std::int64_t n, std::int32_t* places, std::int64_t k) {
  const auto rank = [&](std::int64_t i) { return std::isnan(x[i]) ? infinity<T> : x[i]; };
  std::int64_t held = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (held == k && !(rank(i) > rank(places[k - 1]))) continue;
    std::int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && rank(i) > rank(places[at - 1]); --at) places[at] = places[at - 1];
    places[at] = std::int32_t(i);
  }
}

/// One token's choice, with room for its numbers.
template <class T>
struct Choice {
  const RouteArgs& how;
  std::int64_t e, k;
  T *scores, *compared, *sums;  // [e] each
  std::int32_t* few;            // [e]

  void score(const T* logits) const {
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
        std::fill_n(compared + g * each, each, -infinity<T>);
  }
  void choose(const T* logits, const float* bias, float* weights, std::int32_t* experts) const {
    score(logits);
    for (std::int64_t i = 0; i < e; ++i) compared[i] = scores[i] + T(bias ? bias[i] : 0);
    keep_groups();
    greatest(compared, e, experts, k);
    T* chosen = sums;  // groups are done with
    for (std::int64_t i = 0; i < k; ++i) chosen[i] = scores[experts[i]];
    if (how.score == RouterScore::softmax && !how.softmax_first) softmax_of(chosen, chosen, k);
    const bool divided = how.score != RouterScore::softmax && k > 1;
    const T sum = divided ? sum_of(chosen, k) + least_sum<T> : 1;
    for (std::int64_t i = 0; i < k; ++i) weights[i] = float(chosen[i] / sum * T(how.scaling));
  }
  /// d += the derivative
  void differentiate(T* d, const float* dweights, const T* logits, const std::int32_t* experts) const {
    score(logits);
    const bool all = how.score == RouterScore::softmax && how.softmax_first;
    const bool few_only = how.score == RouterScore::softmax && !all;
    T* chosen = compared;
    for (std::int64_t i = 0; i < k; ++i) chosen[i] = scores[experts[i]];
    if (few_only) softmax_of(chosen, chosen, k);
    const bool divided = !all && !few_only && k > 1;
    const T sum = divided ? sum_of(chosen, k) + least_sum<T> : 1, scaling = how.scaling;
    T along = 0;
    if (all || few_only || divided)
      for (std::int64_t i = 0; i < k; ++i) along += scaling * T(dweights[i]) * chosen[i] / sum;
    if (all)
      for (std::int64_t j = 0; j < e; ++j) d[j] -= scores[j] * along;
    for (std::int64_t i = 0; i < k; ++i) {
      const T given = scaling * T(dweights[i]);
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
template <class T>
class Room {
 public:
  Room(fast::Scratch& scratch, int threads, std::int64_t e)
      : each_(4 * e), first_(scratch.take<T>(threads * each_)) {}
  Choice<T> choice(const RouteArgs& how, std::int64_t e, std::int64_t k) const {
    T* mine = first_ + me() * each_;
    return {how, e, k, mine, mine + e, mine + 2 * e, reinterpret_cast<std::int32_t*>(mine + 3 * e)};
  }

 private:
  std::int64_t each_;
  T* first_;
};

/// scores [e] that add up to one; returns what they were divided by.
template <class T>
T balance_scores(T* scores, const T* logits, std::int64_t e, RouterScore score) {
  if (score == RouterScore::softmax) {
    softmax_of(scores, logits, e);
    return 1;
  }
  for (std::int64_t i = 0; i < e; ++i) scores[i] = score_of(logits[i], score);
  const T sum = sum_of(scores, e) + least_sum<T>;
  for (std::int64_t i = 0; i < e; ++i) scores[i] /= sum;
  return sum;
}

/// Calls what.operator()<T>() with the type that a router computes in.
template <class What>
void in_type_of(const Tensor& logits, const What& what) {
  if (logits.dtype() == Dtype::f64)
    what.template operator()<double>();
  else
    what.template operator()<float>();
}

}  // namespace

void FastKernels::route(const Routed& out, const Tensor& logits, const Tensor& bias, const RouteArgs& how) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1), k = out.experts.dim(1);
  const auto* added = bias ? bias.data<float>() : nullptr;
  auto* weights = out.weights.data<float>();
  auto* experts = out.experts.data<std::int32_t>();
  in_type_of(logits, [&]<class T>() {
    const T* from = logits.data<T>();
    const Room<T> room(scratch_, threads_, e);
    in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
      const Choice<T> choice = room.choice(how, e, k);
      for (std::int64_t i = first; i < last; ++i)
        choice.choose(from + i * e, added, weights + i * k, experts + i * k);
    });
  });
}

void FastKernels::route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                                 const Routed& routed, const RouteArgs& how) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1), k = routed.experts.dim(1);
  const auto* given = dweights.data<float>();
  const auto* experts = routed.experts.data<std::int32_t>();
  in_type_of(logits, [&]<class T>() {
    T* to = dlogits.data<T>();
    const T* from = logits.data<T>();
    const Room<T> room(scratch_, threads_, e);
    in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
      const Choice<T> choice = room.choice(how, e, k);
      for (std::int64_t i = first; i < last; ++i)
        choice.differentiate(to + i * e, given + i * k, from + i * e, experts + i * k);
    });
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
  const auto* table = factors.data<float>();
  in_type_of(logits, [&]<class T>() {
    T* to = dlogits ? dlogits.data<T>() : nullptr;
    const T* from = logits.data<T>();
    T* room = scratch_.take<T>(threads_ * e);
    in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
      T* scores = room + me() * e;
      for (std::int64_t i = first; i < last; ++i) {
        const T* x = from + i * e;
        const float* factor = table + i % b * e;
        const T sum = balance_scores(scores, x, e, score);
        T along = 0;
        for (std::int64_t j = 0; j < e; ++j) along += scores[j] * T(factor[j]);
        sums[i] = float(along);
        if (!to) continue;
        for (std::int64_t j = 0; j < e; ++j) {
          const T slope = score == RouterScore::softmax ? scores[j] : slope_of(x[j], score) / sum;
          to[i * e + j] += T(scale) * slope * (T(factor[j]) - along);
        }
      }
    });
  });
}

void FastKernels::square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                                 float scale) {
  const std::int64_t t = logits.dim(0), e = logits.dim(1);
  auto* squares = terms.data<float>();
  in_type_of(logits, [&]<class T>() {
    T* to = dlogits ? dlogits.data<T>() : nullptr;
    const T* from = logits.data<T>();
    T* room = scratch_.take<T>(threads_ * e);
    in_parallel(threads_, t, t * e * worth, [&](std::int64_t first, std::int64_t last) {
      T* parts = room + me() * e;
      for (std::int64_t i = first; i < last; ++i) {
        const T logarithm = softmax_of(parts, from + i * e, e);
        squares[i] = float(logarithm * logarithm);
        if (!to) continue;
        for (std::int64_t j = 0; j < e; ++j) to[i * e + j] += 2 * T(scale) * logarithm * parts[j];
      }
    });
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
  // Choices sorted by expert: bounds[e] is where those of e begin, and where they end once they are placed.
  auto* bounds = scratch_.take<std::int32_t>(last + 2 + n);
  auto* who = bounds + last + 2;
  std::fill_n(bounds, last + 2, 0);
  for (const std::int32_t e : chosen)
    if (e >= 0) ++bounds[e + 1];
  std::partial_sum(bounds, bounds + last + 2, bounds);
  for (std::int64_t i = 0; i < n; ++i)
    if (chosen[std::size_t(i)] >= 0) who[bounds[chosen[std::size_t(i)]]++] = std::int32_t(i);
  const auto rank = [&](std::int32_t i) { return std::isnan(weights[i]) ? infinity<float> : weights[i]; };
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return rank(a) != rank(b) ? rank(a) > rank(b) : a < b;
  };
  for (std::int32_t e = 0; e <= last; ++e) {
    std::int32_t *first = who + (e > 0 ? bounds[e - 1] : 0), *end = who + bounds[e];
    if (end - first <= most) continue;
    if (policy == DropPolicy::probs) std::nth_element(first, first + most, end, before);
    std::for_each(first + most, end, [&](std::int32_t i) { to[i] = -1; });
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

void FastKernels::plan_rows(const RowPlan& out, const Tensor& experts, std::int64_t room) {
  const std::int64_t n = experts.elements(), e = out.offsets.dim(0) - 1, k = experts.dim(1);
  const auto* chosen = experts.data<std::int32_t>();
  auto *tokens = out.tokens.data<std::int32_t>(), *slots = out.slots.data<std::int32_t>();
  auto* offsets = out.offsets.data<std::int64_t>();
  std::fill_n(offsets, e + 1, 0);
  for (std::int64_t i = 0; i < n; ++i)
    if (chosen[i] >= 0) ++offsets[chosen[i] + 1];
  std::partial_sum(offsets, offsets + e + 1, offsets);
  if (room > 0)
    for (std::int64_t i = 0; i <= e; ++i) offsets[i] = i * room;
  auto* next = scratch_.take<std::int64_t>(e + 1);
  std::copy_n(offsets, e + 1, next);
  const std::int64_t none = room > 0 ? 0 : offsets[e];
  std::fill(tokens + none, tokens + out.tokens.elements(), -1);
  std::fill(slots + none, slots + out.tokens.elements(), -1);
  for (std::int64_t i = 0; i < n; ++i) {
    if (chosen[i] < 0) continue;
    const std::int64_t at = next[chosen[i]]++;
    if (room > 0 && at >= offsets[chosen[i] + 1]) continue;
    tokens[at] = std::int32_t(i / k);
    slots[at] = std::int32_t(i);
  }
}

}  // namespace weft
