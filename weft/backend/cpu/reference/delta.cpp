// The gated delta rule and state spaces step by step, every state in memory.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace {

using Row = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// [rows, columns]
struct Matrix {
  std::size_t rows, columns;
  Row at;
  Matrix(std::size_t m, std::size_t n) : rows(m), columns(n), at(m * n, 0.0) {}
  double& operator()(std::size_t i, std::size_t j) { return at[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return at[i * columns + j]; }
  /// by this and by its transpose
  Row times(const Row& x) const {
    Row y(rows, 0.0);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) y[i] += (*this)(i, j) * x[j];
    return y;
  }
  Row turned_times(const Row& x) const {
    Row y(columns, 0.0);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) y[j] += (*this)(i, j) * x[i];
    return y;
  }
  /// keep this + factor x y^T
  void change(double keep, double factor, const Row& x, const Row& y) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) (*this)(i, j) = keep * (*this)(i, j) + factor * x[i] * y[j];
  }
};

/// Where a head's numbers at a step stand in tensors of which all elements are in order.
struct StepPlace {
  std::size_t shared, own;  // rows of q and of v
  std::size_t weight;       // of speed and shift
};

/// Everything that was given, in order.
struct Given {
  Row q, k, v, decay, rate, speed, shift, skip;
  std::int64_t batch, groups, heads;
  std::size_t d, d_value;
  double scale;
  bool corrects;

  explicit Given(const DeltaIn& in)
      : q(reference::load(in.q)),
        k(reference::load(in.k)),
        v(reference::load(in.v)),
        decay(reference::load(in.decay)),
        rate(in.rate ? reference::load(in.rate) : Row()),
        speed(reference::load(in.speed)),
        shift(reference::load(in.shift)),
        skip(in.skip ? reference::load(in.skip) : Row(shift.size(), 0.0)),
        batch(in.v.dim(1)),
        groups(in.v.dim(2)),
        heads(in.v.dim(3)),
        d(std::size_t(in.q.dim(3))),
        d_value(std::size_t(in.v.dim(4))),
        scale(double(in.scale)),
        corrects(in.corrects()) {}
  StepPlace place(std::int64_t step, std::int64_t sequence, std::int64_t head) const {
    const std::int64_t row = (step * batch + sequence) * groups + head / heads;
    return {std::size_t(row), std::size_t(row * heads + head % heads), std::size_t(head)};
  }
};

Row row_of(const Row& all, std::size_t row, std::size_t width) {
  const auto first = all.begin() + std::ptrdiff_t(row * width);
  return {first, first + std::ptrdiff_t(width)};
}
void add_row(Row& all, std::size_t row, const Row& x, double factor = 1) {
  for (std::size_t i = 0; i < x.size(); ++i) all[row * x.size() + i] += factor * x[i];
}

/// One step of one head.
struct Step {
  Row q, k, v;
  bool corrects;
  double raw, slowness;  // decay + shift, e^speed
  double keep, rate;
  Step(const Given& in, const StepPlace& at)
      : q(row_of(in.q, at.shared, in.d)),
        k(row_of(in.k, at.shared, in.d)),
        v(row_of(in.v, at.own, in.d_value)),
        corrects(in.corrects),
        raw(in.decay[at.own] + in.shift[at.weight]),
        slowness(std::exp(in.speed[at.weight])),
        keep(std::exp(-slowness * softplus(raw))),
        rate(corrects ? sigmoid(in.rate[at.own]) : softplus(raw)) {}
  /// v less what the memory says; all of it where nothing is corrected.
  Row missing(const Matrix& before) const {
    Row out = v;
    if (!corrects) return out;
    const Row said = before.turned_times(k);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] -= keep * said[j];
    return out;
  }
  void apply(Matrix& memory) const { memory.change(keep, rate, k, missing(memory)); }
};

struct Slopes {
  Row dq, dk, dv, ddecay, drate, dspeed, dshift, dskip;
};

/// A step as backward finds it.
struct StepBehind {
  StepPlace at;
  const Matrix& before;  // the memory
  Row dout;
};

/// dmemory goes from behind the step to before it.
void step_backward(Slopes& to, Matrix& dmemory, const Given& in, const StepBehind& behind) {
  const auto& [at, before, dout] = behind;
  const Step step(in, at);
  Matrix after = before;
  step.apply(after);
  add_row(to.dq, at.shared, after.times(dout), in.scale);
  dmemory.change(1, in.scale, step.q, dout);
  const Row missing = step.missing(before);
  Row du = dmemory.turned_times(step.k), w = du;
  for (double& x : w) x *= step.rate;
  add_row(to.dk, at.shared, dmemory.times(missing), step.rate);
  add_row(to.dv, at.own, w);
  double dkeep = dot(dmemory.at, before.at), dtime = 0;
  if (step.corrects) {
    add_row(to.dk, at.shared, before.times(w), -step.keep);
    to.drate[at.own] = dot(du, missing) * step.rate * (1 - step.rate);
    dkeep -= dot(w, before.turned_times(step.k));
  } else {
    dtime = dot(du, step.v);
    add_row(to.dv, at.own, dout, in.skip[at.weight]);
    to.dskip[at.weight] += dot(dout, step.v);
  }
  const double dlog = dkeep * step.keep, draw = (dtime - dlog * step.slowness) * sigmoid(step.raw);
  to.ddecay[at.own] = draw;
  to.dshift[at.weight] += draw;
  to.dspeed[at.weight] -= dlog * step.slowness * softplus(step.raw);
  dmemory.change(step.keep, step.corrects ? -step.keep : 0, step.k, w);
}

}  // namespace

void ReferenceKernels::delta_rule(const Tensor& o, const DeltaIn& in) {
  called();
  const Given given(in);
  Row out(given.v.size(), 0.0), memories = in.memory ? reference::load(in.memory) : Row();
  const std::size_t size = given.d * given.d_value;
  for (std::int64_t b = 0; b < given.batch; ++b)
    for (std::int64_t head = 0; head < given.groups * given.heads; ++head) {
      const auto number = std::size_t(b * given.groups * given.heads + head);
      Matrix memory(given.d, given.d_value);
      if (in.memory) memory.at = row_of(memories, number, size);
      for (std::int64_t i = 0; i < in.v.dim(0); ++i) {
        const StepPlace at = given.place(i, b, head);
        const Step step(given, at);
        step.apply(memory);
        add_row(out, at.own, memory.turned_times(step.q), given.scale);
        add_row(out, at.own, step.v, given.skip[at.weight]);
      }
      if (in.memory) std::ranges::copy(memory.at, memories.begin() + std::ptrdiff_t(number * size));
    }
  reference::store(o, out);
  if (in.memory) reference::store(in.memory, memories);
}

void ReferenceKernels::delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  called();
  const Given given(in);
  const Row above = reference::load(dout);
  Slopes to{.dq = Row(given.q.size()),
            .dk = Row(given.k.size()),
            .dv = Row(given.v.size()),
            .ddecay = Row(given.decay.size()),
            .drate = Row(given.rate.size()),
            .dspeed = reference::load(grads.dspeed),
            .dshift = reference::load(grads.dshift),
            .dskip = grads.dskip ? reference::load(grads.dskip) : Row(given.skip.size())};
  for (std::int64_t b = 0; b < given.batch; ++b)
    for (std::int64_t head = 0; head < given.groups * given.heads; ++head) {
      std::vector<Matrix> before{Matrix(given.d, given.d_value)};
      for (std::int64_t i = 0; i < in.v.dim(0); ++i) {
        before.push_back(before.back());
        Step(given, given.place(i, b, head)).apply(before.back());
      }
      Matrix dmemory(given.d, given.d_value);
      for (std::int64_t i = in.v.dim(0); i-- > 0;) {
        const StepPlace at = given.place(i, b, head);
        step_backward(to, dmemory, given, {at, before[std::size_t(i)], row_of(above, at.own, given.d_value)});
      }
    }
  reference::store(grads.dq, to.dq);
  reference::store(grads.dk, to.dk);
  reference::store(grads.dv, to.dv);
  reference::store(grads.ddecay, to.ddecay);
  if (grads.drate) reference::store(grads.drate, to.drate);
  reference::store(grads.dspeed, to.dspeed);
  reference::store(grads.dshift, to.dshift);
  if (grads.dskip) reference::store(grads.dskip, to.dskip);
}

}  // namespace weft
