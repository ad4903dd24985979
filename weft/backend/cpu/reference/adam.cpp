// Updates, element by element.
#include <cmath>

#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {

void ReferenceKernels::adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  called();
  std::vector<double> master = reference::load(state.master);
  std::vector<double> m = reference::load(state.m);
  std::vector<double> v = reference::load(state.v);
  const std::vector<double> g = reference::load(grad);
  const double rate = how.rate;
  const double decay = how.decay;
  const double beta1 = how.beta1;
  const double beta2 = how.beta2;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double slope = g[i] * double(how.grad_scale) + (how.decoupled ? 0 : decay * master[i]);
    m[i] = beta1 * m[i] + (1 - beta1) * slope;
    v[i] = beta2 * v[i] + (1 - beta2) * slope * slope;
    const double step =
        m[i] / double(how.correction1) / (std::sqrt(v[i] / double(how.correction2)) + double(how.epsilon));
    master[i] -= rate * (step + (how.decoupled ? decay * master[i] : 0));
  }
  reference::store(state.master, master);
  reference::store(state.m, m);
  reference::store(state.v, v);
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

}  // namespace weft
