// A filter for every channel that looks back a few steps, and silu of what it gives.
#include <cmath>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Elements of x [s, b, g, c], of weight [g, c, taps] and of bias [g, c], all in order.
struct Filtered {
  std::int64_t steps, columns, channels, taps;  // columns: b g c
  std::vector<double> x, weight, bias;

  Filtered(const Tensor& at, const Filters& filters)
      : steps(at.dim(0)),
        columns(at.dim(1) * at.dim(2) * at.dim(3)),
        channels(at.dim(2) * at.dim(3)),
        taps(filters.weight.dim(2)),
        x(reference::load(at)),
        weight(reference::load(filters.weight)),
        bias(filters.bias ? reference::load(filters.bias) : std::vector<double>(std::size_t(channels))) {}
  std::size_t place(std::int64_t step, std::int64_t column) const {
    return std::size_t(step * columns + column);
  }
  std::size_t tap(std::int64_t column, std::int64_t j) const {
    return std::size_t(column % channels * taps + j);
  }
  std::size_t channel(std::int64_t column) const { return std::size_t(column % channels); }
  /// use(place of x, place of the weight) for each that a step reads.
  template <class Use>
  void each_read(std::int64_t step, std::int64_t column, const Use& use) const {
    for (std::int64_t j = 0; j < taps; ++j)
      if (const std::int64_t from = step - taps + 1 + j; from >= 0) use(place(from, column), tap(column, j));
  }
  double sum(std::int64_t step, std::int64_t column) const {
    double sum = bias[channel(column)];
    each_read(step, column, [&](std::size_t i, std::size_t j) { sum += x[i] * weight[j]; });
    return sum;
  }
};

}  // namespace

void ReferenceKernels::convolve(const Tensor& y, const Tensor& x, const Filters& filters) {
  called();
  const Filtered in(x, filters);
  std::vector<double> out(in.x.size());
  for (std::int64_t i = 0; i < in.steps; ++i)
    for (std::int64_t column = 0; column < in.columns; ++column) {
      const double sum = in.sum(i, column);
      out[in.place(i, column)] = sum * sigmoid(sum);
    }
  reference::store(y, out);
}

void ReferenceKernels::convolve_backward(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                                         const Filters& filters) {
  called();
  const Filtered in(x, filters);
  const std::vector<double> above = reference::load(dy);
  std::vector<double> dx(in.x.size(), 0.0), dweight = reference::load(grads.dweight);
  std::vector<double> dbias = grads.dbias ? reference::load(grads.dbias) : in.bias;
  for (std::int64_t i = 0; i < in.steps; ++i)
    for (std::int64_t column = 0; column < in.columns; ++column) {
      const double sum = in.sum(i, column), share = sigmoid(sum);
      const double d = above[in.place(i, column)] * share * (1 + sum * (1 - share));
      dbias[in.channel(column)] += d;
      in.each_read(i, column, [&](std::size_t from, std::size_t tap) {
        dx[from] += d * in.weight[tap];
        dweight[tap] += d * in.x[from];
      });
    }
  reference::store(grads.dx, dx);
  reference::store(grads.dweight, dweight);
  if (grads.dbias) reference::store(grads.dbias, dbias);
}

}  // namespace weft
