// Norms, with the two reductions of their derivative.
#include <cmath>
#include <numeric>

#include "weft/backend/cpu/reference/dropped.h"
#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using reference::LoadedRows;

struct Moments {
  double mean, rstd;
};

// layer: mean and 1 / sqrt(variance + epsilon); rms: the same around zero.
Moments moments(std::span<const double> x, const NormArgs& how) {
  const auto h = double(x.size());
  const double mean = how.kind == NormKind::layer ? std::accumulate(x.begin(), x.end(), 0.0) / h : 0;
  double squares = 0;
  for (const double element : x) squares += (element - mean) * (element - mean);
  return {mean, 1 / std::sqrt(squares / h + double(how.epsilon))};
}

std::vector<double> load_gain(const Tensor& gain, const NormArgs& how) {
  std::vector<double> out = reference::load(gain);
  for (double& g : out) g += how.one_plus_gain ? 1 : 0;
  return out;
}

/// Normalises rows and keeps their statistics.
class Normalizer {
 public:
  Normalizer(const Tensor& y, const NormStats& stats, const NormWeights& weights, const NormArgs& how)
      : y_(y),
        stats_(stats),
        how_(how),
        gain_(load_gain(weights.gain, how)),
        bias_(reference::load_or_zeros(weights.bias, y_.width())) {}

  void row(std::int64_t i, std::vector<double> x) {
    const Moments m = moments(x, how_);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = (x[j] - m.mean) * m.rstd * gain_[j] + bias_[j];
    y_.store(i, x);
    means_.push_back(m.mean);
    rstds_.push_back(m.rstd);
  }
  void finish() const {
    if (stats_.mean) reference::store(stats_.mean, means_);
    reference::store(stats_.rstd, rstds_);
  }

 private:
  LoadedRows y_;
  NormStats stats_;
  NormArgs how_;
  std::vector<double> gain_, bias_, means_, rstds_;
};

void add_to(const Tensor& total, std::vector<double> more) {
  if (!total) return;
  const std::vector<double> before = reference::load(total);
  for (std::size_t j = 0; j < more.size(); ++j) more[j] += before[j];
  reference::store(total, more);
}

// n = (x - mean) rstd, g = dy gain  =>  dx = rstd (g - [mean of g] - n mean of (g n)); RMS norms have no [..]
void row_backward(std::span<double> g, std::span<const double> n, double rstd, NormKind kind) {
  const auto h = double(g.size());
  const double mean = kind == NormKind::layer ? std::accumulate(g.begin(), g.end(), 0.0) / h : 0;
  const double along = std::inner_product(g.begin(), g.end(), n.begin(), 0.0) / h;
  for (std::size_t j = 0; j < g.size(); ++j) g[j] = rstd * (g[j] - mean - n[j] * along);
}

}  // namespace

void ReferenceKernels::norm(const Tensor& y, const NormStats& stats, const Tensor& x,
                            const NormWeights& weights, const NormArgs& how) {
  called();
  const LoadedRows from(x);
  Normalizer normalizer(y, stats, weights, how);
  for (std::int64_t i = 0; i < from.count(); ++i) normalizer.row(i, from.load(i));
  normalizer.finish();
}

void ReferenceKernels::norm_backward(const NormGrads& grads, const Tensor& dy, const Tensor& residual,
                                     const NormSaved& saved, const NormArgs& how) {
  called();
  if (grads.dgain && grads.dgain.rank() == 2) {
    const std::int64_t sets = grads.dgain.dim(0), rows = saved.x.dim(0) / sets;
    for (std::int64_t i = 0; i < sets; ++i) {
      const auto some = [&](const Tensor& t) { return t ? t.slice(0, i * rows, rows) : t; };
      const NormSaved piece{some(saved.x), {some(saved.stats.mean), some(saved.stats.rstd)}, saved.gain};
      const Tensor dbias = grads.dbias ? grads.dbias.at(0, i) : Tensor();
      const NormGrads into{some(grads.dx), grads.dgain.at(0, i), dbias, some(grads.rounded)};
      ReferenceKernels::norm_backward(into, some(dy), some(residual), piece, how);
    }
    return;
  }
  const LoadedRows to(grads.dx);
  const LoadedRows from(saved.x);
  const LoadedRows given(dy);
  const std::vector<double> gain = load_gain(saved.gain, how);
  const std::vector<double> mean = reference::load_or_zeros(saved.stats.mean, from.count());
  const std::vector<double> rstd = reference::load(saved.stats.rstd);
  std::vector<double> dgain(gain.size());
  std::vector<double> dbias(gain.size());
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const auto t = std::size_t(i);
    std::vector<double> n = from.load(i);
    std::vector<double> g = given.load(i);
    for (std::size_t j = 0; j < n.size(); ++j) {
      n[j] = (n[j] - mean[t]) * rstd[t];
      dgain[j] += g[j] * n[j];
      dbias[j] += g[j];
      g[j] *= gain[j];
    }
    row_backward(g, n, rstd[t], how.kind);
    const std::vector<double> stream =
        residual ? LoadedRows(residual).load(i) : std::vector<double>(g.size());
    for (std::size_t j = 0; j < g.size(); ++j) g[j] += stream[j];
    to.store(i, g);
    if (grads.rounded) LoadedRows(grads.rounded).store(i, to.load(i));
  }
  add_to(grads.dgain, dgain);
  add_to(grads.dbias, dbias);
}

void ReferenceKernels::sum_norm(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                                const NormArgs& how) {
  called();
  bias_dropout_add(out.sum, in.x, in.bias, in.residual, in.dropout);
  norm(out.y, out.stats, out.sum, weights, how);
}

void ReferenceKernels::scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor) {
  called();
  const LoadedRows to(y);
  const LoadedRows from(x);
  const std::vector<double> factors = reference::load(factor);
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::vector<double> row = from.load(i);
    for (double& element : row) element *= factors[std::size_t(i)];
    to.store(i, row);
  }
}

void ReferenceKernels::dot_rows(const Tensor& out, const Tensor& a, const Tensor& b) {
  called();
  const LoadedRows left(a);
  const LoadedRows right(b);
  std::vector<double> dots;
  for (std::int64_t i = 0; i < left.count(); ++i) {
    const std::vector<double> x = left.load(i);
    const std::vector<double> y = right.load(i);
    dots.push_back(std::inner_product(x.begin(), x.end(), y.begin(), 0.0));
  }
  reference::store(out, dots);
}

}  // namespace weft
