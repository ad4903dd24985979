// One pass over weights and moments: read once, written once, with the copy that layers read.
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {
namespace {

void adam(const AdamRow& row, const AdamStep& step, std::int64_t n) {
  const AdamRow r = row;
  const AdamStep s = step;
  each(n, [&](auto at) {
    const F w = load(r.master, at);
    const F g = load(r.grad, at) * all(s.grad_scale) + all(s.decay) * w;
    const F m = all(s.beta1) * load(r.m, at) + all(s.rest1) * g;
    const F v = all(s.beta2) * load(r.v, at) + all(s.rest2) * (g * g);
    const F next = w * all(s.keep) - all(s.step) * m / (root(v) * all(s.root) + all(s.epsilon));
    store(r.m, at, m);
    store(r.v, at, v);
    store(r.master, at, next);
    if (r.copy.to) store(r.copy, at, next);
  });
}

// m = momentum m + (g + decay w),  w -= rate m
void sgd(const SgdRow& row, const SgdStep& step, std::int64_t n) {
  const SgdRow r = row;
  const SgdStep s = step;
  each(n, [&](auto at) {
    const F w = load(r.master, at);
    const F g = load(r.grad, at) * all(s.grad_scale) + all(s.decay) * w;
    const F m = r.momentum ? all(s.momentum) * load(r.momentum, at) + g : g;
    const F next = w - all(s.rate) * m;
    if (r.momentum) store(r.momentum, at, m);
    store(r.master, at, next);
    if (r.copy.to) store(r.copy, at, next);
  });
}

}  // namespace

extern const OptimizerLoops optimizers;
const OptimizerLoops optimizers = {.adam = adam, .sgd = sgd};

}  // namespace weft::fast::WEFT_ISA
