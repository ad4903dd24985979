// Attention, one row of scores at a time, in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;
using Row = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add_times(std::span<double> out, std::span<const double> x, double factor) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] += factor * x[j];
}

/// Where a query stands.
struct Query {
  std::int64_t b, head, i;
};

/// The keys of one row of the batch and one group.
struct HeadRows {
  explicit HeadRows(const Tensor& rows) : d(std::size_t(rows.dim(-1))), elements(reference::load(rows)) {}
  HeadRows(std::int64_t count, std::int64_t width)
      : d(std::size_t(width)), elements(std::size_t(count * width)) {}
  std::span<const double> operator[](std::int64_t j) const {
    return std::span(elements).subspan(std::size_t(j) * d, d);
  }
  std::span<double> operator[](std::int64_t j) { return std::span(elements).subspan(std::size_t(j) * d, d); }
  std::size_t d;
  Row elements;
};

/// Scores, what is seen, and what is dropped.
class Scores {
 public:
  Scores(const Attended& in, const AttentionArgs& how) : how_(how), sk_(in.k.dim(0)) {
    if (how.bias) bias_ = reference::load(how.bias);
    if (how.bias) distances_ = how.bias.dim(1);
    if (how.query_segments) {
      query_segments_ = reference::load(how.query_segments);
      key_segments_ = reference::load(how.key_segments);
    }
    sq_ = in.q.dim(0);
    if (how.dropout == 0) return;
    for (const std::int64_t sample : how.samples.as<std::int64_t>()) {
      Address at = how.at;
      at.sample = std::uint64_t(sample);
      draws_.emplace_back(at);
    }
  }

  bool sees(const Query& at, std::int64_t j) const {
    if (how_.mask == Mask::causal && j > at.i + how_.diagonal) return false;
    if (how_.window > 0 && j <= at.i + how_.diagonal - how_.window) return false;
    if (query_segments_.empty()) return true;
    const double segment = query_segments_[std::size_t(at.b * sq_ + at.i)];
    return segment >= 0 && segment == key_segments_[std::size_t(at.b * sk_ + j)];
  }

  /// Where a bias and its gradient stand.
  std::size_t distance(const Query& at, std::int64_t j) const {
    return std::size_t(at.head * distances_ + at.i - j + how_.bias0);
  }

  /// scale q k, capped, + bias, minus infinity where nothing is seen
  Row row(const Query& at, std::span<const double> q, const HeadRows& k) const {
    Row out(std::size_t(sk_), -infinity);
    for (std::int64_t j = 0; j < sk_; ++j) {
      if (!sees(at, j)) continue;
      const double bias = bias_.empty() ? 0 : bias_[distance(at, j)];
      out[std::size_t(j)] = capped(double(how_.scale) * dot(q, k[j])) + bias;
    }
    return out;
  }

  /// The derivative of a capped score by what it was before; a score has a bias or a cap.
  double slope(double score) const {
    const double part = how_.cap > 0 ? score / double(how_.cap) : 0;
    return 1 - part * part;
  }

  /// What a probability is multiplied with: 0 where dropped, 1 / (1 - p) where kept.
  double kept(const Query& at, std::int64_t j) const {
    if (how_.dropout == 0) return 1;
    const std::int64_t element =
        ((how_.head0 + at.head) << 40) | ((how_.query0 + at.i) << 20) | (how_.key0 + j);
    const bool drop = draws_[std::size_t(at.b)].word(std::uint64_t(element)) < share(how_.dropout);
    return drop ? 0 : 1 / (1 - double(how_.dropout));
  }

 private:
  double capped(double score) const {
    const auto cap = double(how_.cap);
    return cap > 0 ? cap * std::tanh(score / cap) : score;
  }

  AttentionArgs how_;
  std::int64_t sk_, sq_ = 0, distances_ = 0;
  Row bias_, query_segments_, key_segments_;
  std::vector<Draw> draws_;
};

double log_of_sum(std::span<const double> scores) {
  const double max = scores.empty() ? -infinity : *std::max_element(scores.begin(), scores.end());
  if (max == -infinity) return max;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - max);
  return max + std::log(sum);
}

/// Infinite where a score is no number, and from there on.
double greater_of(double greatest, double score) {
  if (std::isnan(score)) return infinity;
  return std::max(greatest, score);
}
double greatest_of(std::span<const double> scores) {
  return std::accumulate(scores.begin(), scores.end(), -infinity, greater_of);
}

Tensor group_of(const Tensor& keys, std::int64_t b, std::int64_t g) { return keys.at(1, b).at(1, g); }

/// The rows of one query head: [sq, d]
Tensor head_of(const Tensor& queries, std::int64_t b, std::int64_t g, std::int64_t r) {
  return queries.at(1, b).at(1, g).at(1, r);
}

/// Calls f(b, g, r, head) for every query head.
template <class F>
void each_head(const Tensor& q, F f) {
  for (std::int64_t b = 0; b < q.dim(1); ++b)
    for (std::int64_t g = 0; g < q.dim(2); ++g)
      for (std::int64_t r = 0; r < q.dim(3); ++r) f(b, g, r, g * q.dim(3) + r);
}

void store_sum(const Tensor& out, Row values, bool accumulate) {
  if (accumulate) add_times(values, reference::load(out), 1);
  reference::store(out, values);
}

/// The derivative for one query head. p = exp(score - lse), k(ept) its dropout factor:
///   dv_j += p k dout,  ds = p (k <dout, v_j> - <dout, o>) cap'(score),  dq += scale ds k_j,
///   dk_j += scale ds q,  dbias += ds at its distance
struct HeadBackward {
  const Scores& scores;
  double scale;
  const HeadRows &k, &v;
  HeadRows &dk, &dv;
  Row& dbias;  // of all heads; empty where nobody asks

  struct Saved {
    Row q, dout, o;
    double lse;
  };
  Row query(const Query& at, const Saved& saved) const {
    const auto& [q, dout, o, lse] = saved;
    Row dq(q.size());
    const Row row = scores.row(at, q, k);
    const double correction = dot(dout, o);
    for (std::int64_t j = 0; j < std::int64_t(row.size()); ++j) {
      const double p = std::exp(row[std::size_t(j)] - lse);
      if (row[std::size_t(j)] == -infinity || p == 0) continue;
      const double kept = scores.kept(at, j);
      const double slope = p * (kept * dot(dout, v[j]) - correction) * scores.slope(row[std::size_t(j)]);
      add_times(dv[j], dout, p * kept);
      add_times(dq, k[j], scale * slope);
      add_times(dk[j], q, scale * slope);
      if (!dbias.empty()) dbias[scores.distance(at, j)] += slope;
    }
    return dq;
  }
};

}  // namespace

void ReferenceKernels::attention(const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
  called();
  const Scores scores(in, how);
  each_head(in.q, [&](std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t head) {
    const HeadRows k(group_of(in.k, b, g));
    const HeadRows v(group_of(in.v, b, g));
    const LoadedRows q(head_of(in.q, b, g, r));
    const LoadedRows o(head_of(out.o, b, g, r));
    Row logs, greatest;
    for (std::int64_t i = 0; i < q.count(); ++i) {
      const Query at{b, head, i};
      const Row row = scores.row(at, q.load(i), k);
      logs.push_back(log_of_sum(row));
      greatest.push_back(greatest_of(row));
      Row sum(v.d);
      for (std::int64_t j = 0; j < std::int64_t(row.size()); ++j)
        if (row[std::size_t(j)] != -infinity)
          add_times(sum, v[j], scores.kept(at, j) * std::exp(row[std::size_t(j)] - logs.back()));
      o.store(i, sum);
    }
    reference::store(out.lse.at(0, b).at(0, head), logs);
    if (out.greatest) reference::store(out.greatest.at(0, b).at(0, head), greatest);
  });
}

void ReferenceKernels::raise_greatest(const Tensor& greatest, const Tensor& rows) {
  called();
  Row most = reference::load(greatest);
  for (std::int64_t b = 0; b < rows.dim(0); ++b)
    for (std::size_t head = 0; head < most.size(); ++head) {
      const Row row = reference::load(rows.at(0, b).at(0, std::int64_t(head)));
      most[head] = std::accumulate(row.begin(), row.end(), most[head], greater_of);
    }
  reference::store(greatest, most);
}

void ReferenceKernels::attention_backward(const AttentionGrads& grads, const Tensor& dout,
                                          const AttentionOut& out, const Attended& in,
                                          const AttentionArgs& how) {
  called();
  const Scores scores(in, how);
  Row dbias;
  if (grads.dbias) dbias = reference::load(grads.dbias);
  for (std::int64_t b = 0; b < in.k.dim(1); ++b)
    for (std::int64_t g = 0; g < in.k.dim(2); ++g) {
      const HeadRows k(group_of(in.k, b, g));
      const HeadRows v(group_of(in.v, b, g));
      HeadRows dk(in.k.dim(0), in.k.dim(3));
      HeadRows dv(in.v.dim(0), in.v.dim(3));
      const HeadBackward backward{scores, double(how.scale), k, v, dk, dv, dbias};
      for (std::int64_t r = 0; r < in.q.dim(3); ++r) {
        const std::int64_t head = g * in.q.dim(3) + r;
        const LoadedRows q(head_of(in.q, b, g, r));
        const LoadedRows o(head_of(out.o, b, g, r));
        const LoadedRows given(head_of(dout, b, g, r));
        const Row lse = reference::load(out.lse.at(0, b).at(0, head));
        for (std::int64_t i = 0; i < q.count(); ++i) {
          const HeadBackward::Saved saved{q.load(i), given.load(i), o.load(i), lse[std::size_t(i)]};
          store_sum(head_of(grads.dq, b, g, r).at(0, i), backward.query({b, head, i}, saved),
                    grads.accumulate);
        }
      }
      store_sum(group_of(grads.dk, b, g), dk.elements, grads.accumulate);
      store_sum(group_of(grads.dv, b, g), dv.elements, grads.accumulate);
    }
  if (grads.dbias) reference::store(grads.dbias, dbias);
}

// lse = log(e^a + e^b),  o = e^(a - lse) o_a + e^(b - lse) o_b
void ReferenceKernels::merge_attention(const AttentionOut& into, const AttentionOut& part) {
  called();
  each_head(into.o, [&](std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t head) {
    const LoadedRows to(head_of(into.o, b, g, r));
    const LoadedRows from(head_of(part.o, b, g, r));
    Row logs = reference::load(into.lse.at(0, b).at(0, head));
    const Row more = reference::load(part.lse.at(0, b).at(0, head));
    for (std::int64_t i = 0; i < to.count(); ++i) {
      const std::array<double, 2> both{logs[std::size_t(i)], more[std::size_t(i)]};
      const double lse = log_of_sum(both);
      Row sum(std::size_t(to.width()));
      if (both[0] != -infinity) add_times(sum, to.load(i), std::exp(both[0] - lse));
      if (both[1] != -infinity) add_times(sum, from.load(i), std::exp(both[1] - lse));
      logs[std::size_t(i)] = lse;
      to.store(i, sum);
    }
    reference::store(into.lse.at(0, b).at(0, head), logs);
  });
}

void ReferenceKernels::sink_terms(const Tensor& terms, const Tensor& lse, const Tensor& sinks) {
  called();
  const LoadedRows to(terms), sums(lse);
  const Row scores = reference::load(sinks);
  for (std::int64_t i = 0; i < to.count(); ++i) {
    Row row = to.load(i);
    const Row logs = sums.load(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] *= -std::exp(scores[j] - logs[j]);
    to.store(i, row);
  }
}

}  // namespace weft
