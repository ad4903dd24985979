// Choosing experts in plain loops: the definitions, one token after the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;
using Numbers = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double least_sum = 1e-20;  // below which scores are not divided by their sum

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

Numbers softmax_of(Numbers x) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& one : x) sum += one = std::exp(one - max);
  for (double& one : x) one /= sum;
  return x;
}

double score_of(double logit, RouterScore score) {
  return score == RouterScore::sigmoid ? sigmoid(logit) : std::sqrt(softplus(logit));
}
double slope_of(double logit, RouterScore score) {
  const double s = sigmoid(logit);
  return score == RouterScore::sigmoid ? s * (1 - s) : s / (2 * std::sqrt(softplus(logit)));
}

/// The places of the k greatest, of equal ones the lower. A NaN counts as the greatest.
std::vector<std::size_t> greatest(const Numbers& x, std::size_t k) {
  const auto rank = [&](std::size_t i) { return std::isnan(x[i]) ? infinity : x[i]; };
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rank(a) > rank(b); });
  order.resize(k);
  return order;
}

/// What is in none of the best groups becomes minus infinity.
void keep_groups(Numbers& compared, std::size_t k, const RouteArgs& how) {
  if (how.groups == 0) return;
  const std::size_t each = compared.size() / std::size_t(how.groups), best = k / std::size_t(how.groups_kept);
  Numbers sums;
  for (std::size_t g = 0; g < std::size_t(how.groups); ++g) {
    const Numbers group(compared.begin() + std::ptrdiff_t(g * each),
                        compared.begin() + std::ptrdiff_t((g + 1) * each));
    double sum = 0;
    for (const std::size_t i : greatest(group, best)) sum += group[i];
    sums.push_back(sum);
  }
  const auto kept = greatest(sums, std::size_t(how.groups_kept));
  for (std::size_t i = 0; i < compared.size(); ++i)
    if (std::find(kept.begin(), kept.end(), i / each) == kept.end()) compared[i] = -infinity;
}

/// Scores of one token: those that experts are compared by, and those that weights are taken from.
Numbers scores_of(const Numbers& logits, const RouteArgs& how) {
  if (how.score == RouterScore::softmax) return how.softmax_first ? softmax_of(logits) : logits;
  Numbers out;
  for (const double x : logits) out.push_back(score_of(x, how.score));
  return out;
}

Numbers weights_of(const Numbers& chosen, const RouteArgs& how) {
  Numbers out = chosen;
  if (how.score == RouterScore::softmax && !how.softmax_first) out = softmax_of(chosen);
  if (how.score != RouterScore::softmax && chosen.size() > 1) {
    const double sum = std::accumulate(chosen.begin(), chosen.end(), 0.0) + least_sum;
    for (double& one : out) one /= sum;
  }
  for (double& one : out) one *= how.scaling;
  return out;
}

/// Of all experts, adding up to one.
Numbers balance_scores(const Numbers& logits, RouterScore score) {
  if (score == RouterScore::softmax) return softmax_of(logits);
  Numbers out;
  for (const double x : logits) out.push_back(score_of(x, score));
  const double sum = std::accumulate(out.begin(), out.end(), 0.0) + least_sum;
  for (double& one : out) one /= sum;
  return out;
}

/// Of <scores, factors> at the logits.
Numbers balance_slopes(const Numbers& logits, const Numbers& scores, const Numbers& factors,
                       RouterScore score) {
  const double along = std::inner_product(scores.begin(), scores.end(), factors.begin(), 0.0);
  double sum = least_sum;
  if (score != RouterScore::softmax)
    for (const double x : logits) sum += score_of(x, score);
  Numbers out;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    const double slope = score == RouterScore::softmax ? scores[j] : slope_of(logits[j], score) / sum;
    out.push_back(slope * (factors[j] - along));
  }
  return out;
}

void add_to(const Tensor& dlogits, std::int64_t row, const Numbers& more, double scale) {
  if (!dlogits) return;
  const LoadedRows to(dlogits);
  Numbers sum = to.load(row);
  for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += scale * more[j];
  to.store(row, sum);
}

/// The derivative of a token's weights at its logits.
Numbers route_slopes(const Numbers& logits, const Numbers& dweights, const Numbers& experts,
                     const RouteArgs& how) {
  Numbers out(logits.size()), chosen, d;
  const Numbers scores = scores_of(logits, how);
  for (const double e : experts) chosen.push_back(scores[std::size_t(e)]);
  for (const double dw : dweights) d.push_back(dw * how.scaling);
  if (how.score == RouterScore::softmax && how.softmax_first) {
    double along = 0;
    for (std::size_t i = 0; i < d.size(); ++i) along += d[i] * chosen[i];
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = -scores[j] * along;
    for (std::size_t i = 0; i < d.size(); ++i) out[std::size_t(experts[i])] += chosen[i] * d[i];
    return out;
  }
  const bool softmax = how.score == RouterScore::softmax;
  const Numbers parts = softmax ? softmax_of(chosen) : Numbers();
  const double sum = std::accumulate(chosen.begin(), chosen.end(), 0.0) + least_sum;
  double along = 0;
  for (std::size_t i = 0; i < d.size(); ++i) along += d[i] * (softmax ? parts[i] : chosen[i] / sum);
  for (std::size_t i = 0; i < d.size(); ++i) {
    const auto e = std::size_t(experts[i]);
    if (softmax)
      out[e] = parts[i] * (d[i] - along);
    else
      out[e] = slope_of(logits[e], how.score) * (d.size() > 1 ? (d[i] - along) / sum : d[i]);
  }
  return out;
}

}  // namespace

void ReferenceKernels::route(const Routed& out, const Tensor& logits, const Tensor& bias,
                             const RouteArgs& how) {
  called();
  const LoadedRows from(logits), weights(out.weights), experts(out.experts);
  const Numbers added = reference::load_or_zeros(bias, logits.dim(1));
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const Numbers scores = scores_of(from.load(i), how);
    Numbers compared = scores;
    for (std::size_t j = 0; j < compared.size(); ++j) compared[j] += added[j];
    keep_groups(compared, std::size_t(experts.width()), how);
    const auto places = greatest(compared, std::size_t(experts.width()));
    Numbers chosen;
    for (const std::size_t place : places) chosen.push_back(scores[place]);
    weights.store(i, weights_of(chosen, how));
    experts.store(i, Numbers(places.begin(), places.end()));
  }
}

void ReferenceKernels::route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                                      const Routed& routed, const RouteArgs& how) {
  called();
  const LoadedRows from(logits), given(dweights), experts(routed.experts);
  for (std::int64_t i = 0; i < from.count(); ++i)
    add_to(dlogits, i, route_slopes(from.load(i), given.load(i), experts.load(i), how), 1);
}

void ReferenceKernels::count_experts(const Tensor& counts, const Tensor& experts) {
  called();
  const LoadedRows from(experts), to(counts);
  std::vector<Numbers> sums(std::size_t(to.count()), Numbers(std::size_t(to.width())));
  for (std::int64_t i = 0; i < from.count(); ++i)
    for (const double e : from.load(i))
      if (e >= 0) ++sums[std::size_t(i % to.count())][std::size_t(e)];
  for (std::int64_t i = 0; i < to.count(); ++i) to.store(i, sums[std::size_t(i)]);
}

void ReferenceKernels::balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                               const Tensor& factors, RouterScore score, float scale) {
  called();
  const LoadedRows from(logits), table(factors);
  Numbers sums;
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const Numbers row = from.load(i), factor = table.load(i % table.count());
    const Numbers scores = balance_scores(row, score);
    sums.push_back(std::inner_product(scores.begin(), scores.end(), factor.begin(), 0.0));
    add_to(dlogits, i, balance_slopes(row, scores, factor, score), scale);
  }
  reference::store(terms, sums);
}

void ReferenceKernels::square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                                      float scale) {
  called();
  const LoadedRows from(logits);
  Numbers squares;
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const Numbers row = from.load(i);
    const double max = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const double x : row) sum += std::exp(x - max);
    const double logarithm = max + std::log(sum);
    squares.push_back(logarithm * logarithm);
    add_to(dlogits, i, softmax_of(row), 2 * double(scale) * logarithm);
  }
  reference::store(terms, squares);
}

void ReferenceKernels::limit_experts(const Tensor& kept, const Routed& routed, std::int64_t most,
                                     DropPolicy policy) {
  called();
  Numbers experts = reference::load(routed.experts);
  const Numbers weights = reference::load(routed.weights);
  const double last = experts.empty() ? -1 : *std::max_element(experts.begin(), experts.end());
  for (double e = 0; e <= last; ++e) {
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < experts.size(); ++i)
      if (experts[i] == e) who.push_back(i);
    if (policy == DropPolicy::probs)
      std::stable_sort(who.begin(), who.end(), [&](auto a, auto b) { return weights[a] > weights[b]; });
    for (std::size_t i = std::size_t(most); i < who.size(); ++i) experts[who[i]] = -1;
  }
  reference::store(kept, experts);
}

void ReferenceKernels::follow_counts(const Tensor& bias, const Tensor& counts, float rate) {
  called();
  const Numbers seen = reference::load(counts);
  Numbers sums = reference::load(bias);
  const double mean = std::accumulate(seen.begin(), seen.end(), 0.0) / double(seen.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] += seen[i] == mean ? 0 : seen[i] < mean ? rate : -rate;
  reference::store(bias, sums);
}

void ReferenceKernels::plan_rows(const RowPlan& out, const Tensor& experts, std::int64_t room) {
  called();
  const Numbers chosen = reference::load(experts);
  const std::size_t k = std::max<std::size_t>(std::size_t(experts.dim(1)), 1);
  Numbers tokens, slots, offsets{0};
  for (std::int64_t e = 0; e + 1 < out.offsets.dim(0); ++e) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] == double(e)) {
        const std::size_t token = i / k;
        tokens.push_back(double(token));
        slots.push_back(double(i));
      }
    if (room > 0)
      for (Numbers* rows : {&tokens, &slots}) rows->resize(std::size_t((e + 1) * room), -1);
    offsets.push_back(double(tokens.size()));
  }
  for (Numbers* rows : {&tokens, &slots}) rows->resize(std::size_t(out.tokens.elements()), -1);
  reference::store(out.tokens, tokens);
  reference::store(out.slots, slots);
  reference::store(out.offsets, offsets);
}

}  // namespace weft
