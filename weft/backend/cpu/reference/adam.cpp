// Updates, element by element.
#include <cmath>
#include <utility>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/moments.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {

using reference::Moment;

namespace {

/// sqrt(v / correction) + epsilon
double divisor(double v, const AdamArgs& how) {
  const double corrected = v / double(how.correction2), epsilon = double(how.epsilon);
  return how.epsilon_inside ? std::sqrt(corrected + epsilon) : std::sqrt(corrected) + epsilon;
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace

void ReferenceKernels::adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  called();
  std::vector<double> master = reference::load(state.master);
  std::vector<double> m = reference::load_moment(state.m, Moment::first);
  std::vector<double> v = reference::load_moment(state.v, Moment::second);
  const std::vector<double> g = reference::load(grad);
  const double rate = how.rate;
  const double decay = how.decay;
  const double beta1 = how.beta1;
  const double beta2 = how.beta2;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double slope = g[i] * double(how.grad_scale) + (how.decoupled ? 0 : decay * master[i]);
    m[i] = beta1 * m[i] + (1 - beta1) * slope;
    v[i] = beta2 * v[i] + (1 - beta2) * slope * slope;
    const double step = m[i] / double(how.correction1) / divisor(v[i], how);
    master[i] -= rate * (step + (how.decoupled ? decay * master[i] : 0));
  }
  reference::store(state.master, master);
  reference::store_moment(state.m, Moment::first, std::move(m), how.dice);
  reference::store_moment(state.v, Moment::second, std::move(v), how.dice);
  // The copy is the master as stored, so that a resumed run reads the same weights.
  if (state.copy) copy(state.copy, state.master);
}

void ReferenceKernels::sgd(const SgdState& state, const Tensor& grad, const SgdArgs& how) {
  called();
  std::vector<double> master = reference::load(state.master);
  std::vector<double> momentum = reference::load_or_zeros(state.momentum, grad.elements());
  const std::vector<double> g = reference::load(grad);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double slope = g[i] * double(how.grad_scale) + double(how.decay) * master[i];
    momentum[i] = double(how.momentum) * momentum[i] + slope;
    master[i] -= double(how.rate) * momentum[i];
  }
  reference::store(state.master, master);
  if (state.momentum) reference::store(state.momentum, momentum);
  if (state.copy) copy(state.copy, state.master);
}

void ReferenceKernels::lion(const SgdState& state, const Tensor& grad, const LionArgs& how) {
  called();
  std::vector<double> master = reference::load(state.master);
  std::vector<double> m = reference::load(state.momentum);
  const std::vector<double> g = reference::load(grad);
  const double beta1 = how.beta1, beta2 = how.beta2, rate = how.rate;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double slope = g[i] * double(how.grad_scale);
    const double direction = sign(beta1 * m[i] + (1 - beta1) * slope) + double(how.decay) * master[i];
    m[i] = beta2 * m[i] + (1 - beta2) * slope;
    master[i] -= rate * direction;
  }
  reference::store(state.master, master);
  reference::store(state.momentum, m);
  if (state.copy) copy(state.copy, state.master);
}

void ReferenceKernels::adam_direction(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  called();
  const std::vector<double> master = reference::load(state.master);
  std::vector<double> m = reference::load(state.m);
  std::vector<double> v = reference::load(state.v);
  std::vector<double> g = reference::load(grad);
  const double beta1 = how.beta1, beta2 = how.beta2, decay = how.decay;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double slope = g[i] * double(how.grad_scale) + (how.decoupled ? 0 : decay * master[i]);
    m[i] = beta1 * m[i] + (1 - beta1) * slope;
    v[i] = beta2 * v[i] + (1 - beta2) * slope * slope;
    g[i] = m[i] / double(how.correction1) / divisor(v[i], how) + (how.decoupled ? decay * master[i] : 0);
  }
  reference::store(state.m, m);
  reference::store(state.v, v);
  reference::store(grad, g);
}

void ReferenceKernels::descend(const Tensor& master, const Tensor& copied, const Tensor& x,
                               const DescentArgs& how) {
  called();
  std::vector<double> weights = reference::load(master);
  const std::vector<double> direction = reference::load(x);
  const double rate = double(how.rate) * (how.by ? reference::load(how.by).front() : 1);
  for (std::size_t i = 0; i < direction.size(); ++i)
    weights[i] = double(how.keep) * weights[i] - rate * direction[i];
  reference::store(master, weights);
  if (copied) copy(copied, master);
}

void ReferenceKernels::root(const Tensor& out, const Tensor& x, float epsilon) {
  called();
  std::vector<double> values = reference::load(x);
  for (double& value : values) value = std::sqrt(value) + double(epsilon);
  reference::store(out, values);
}

void ReferenceKernels::take_signs(const Tensor& bits, const Tensor& x, const Tensor& size) {
  called();
  const double by = reference::load(size).front();
  std::vector<double> values = reference::load(x);
  std::vector<double> bytes(values.size() / 8);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool up = !(values[i] < 0);
    if (up) bytes[i / 8] += double(128 >> (i % 8));
    values[i] -= up ? by : -by;
  }
  reference::store(bits, bytes);
  reference::store(x, values);
}

void ReferenceKernels::add_signs(const Tensor& out, const Tensor& bits, const Tensor& size, float share) {
  called();
  const double by = reference::load(size).front() / double(share);
  std::vector<double> values = reference::load(out);
  const std::vector<double> bytes = reference::load(bits);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool up = (int(bytes[i / 8]) & 128 >> (i % 8)) != 0;
    values[i] += up ? by : -by;
  }
  reference::store(out, values);
}

}  // namespace weft
