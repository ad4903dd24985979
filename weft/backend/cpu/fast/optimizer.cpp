// The updates, in stretches.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

namespace {

bool whole(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors)
    if (*tensor && !tensor->contiguous()) return false;
  return true;
}

/// A flat tensor from an element on.
struct Flat {
  explicit Flat(const Tensor& tensor, std::initializer_list<const Tensor*> read = {})
      : whole(tensor ? Lines(tensor.view({tensor.elements()}), read) : Lines(Tensor())),
        size(tensor ? size_of(tensor.dtype()) : 0) {}
  std::byte* at(std::int64_t element) const { return whole.at(0) ? whole.at(0) + element * size : nullptr; }
  float* floats(std::int64_t element) const { return reinterpret_cast<float*>(at(element)); }
  fast::In in(std::int64_t element) const { return {at(element), whole.in(0).type}; }
  fast::Out out(std::int64_t element) const { return {at(element), whole.in(0).type, whole.past()}; }
  Lines whole;
  std::int64_t size;
};

/// body(first element, how many) for each stretch.
template <class Body>
void by_stretches(int threads, std::int64_t n, const fast::Loops& loops, const Body& body) {
  in_parallel(threads, (n + fast::stretch - 1) / fast::stretch, n,
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first * fast::stretch; i < std::min(last * fast::stretch, n);
                     i += fast::stretch)
                  body(i, std::min(fast::stretch, n - i));
                loops.elementwise.finish();
              });
}

fast::AdamStep step_of(const AdamArgs& how) {
  fast::AdamStep step = {};
  step.beta1 = how.beta1;
  step.rest1 = float(1 - double(how.beta1));
  step.beta2 = how.beta2;
  step.rest2 = float(1 - double(how.beta2));
  step.step = float(double(how.rate) / double(how.correction1));
  step.root = float(1 / std::sqrt(double(how.correction2)));
  step.epsilon = how.epsilon;
  step.keep = how.decoupled ? float(1 - double(how.rate) * double(how.decay)) : 1;
  step.decay = how.decoupled ? 0 : how.decay;
  step.grad_scale = how.grad_scale;
  return step;
}

}  // namespace

void FastKernels::adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  if (!ready({&grad, &state.copy}) || !whole({&state.master, &state.m, &state.v, &state.copy, &grad}))
    return ReferenceKernels::adam(state, grad, how);
  const Flat master(state.master);
  const Flat m(state.m);
  const Flat v(state.v);
  const Flat slope(grad);
  const Flat copy(state.copy, {&grad});
  const fast::AdamStep step = step_of(how);
  by_stretches(threads_, grad.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.adam({master.floats(i), m.floats(i), v.floats(i), slope.in(i), copy.out(i)}, step, n);
  });
}

void FastKernels::sgd(const SgdState& state, const Tensor& grad, const SgdArgs& how) {
  if (!ready({&grad, &state.copy}) || !whole({&state.master, &state.momentum, &state.copy, &grad}))
    return ReferenceKernels::sgd(state, grad, how);
  const Flat master(state.master);
  const Flat momentum(state.momentum);
  const Flat slope(grad);
  const Flat copy(state.copy, {&grad});
  const fast::SgdStep step = {how.rate, how.momentum, how.decay, how.grad_scale};
  by_stretches(threads_, grad.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.sgd({master.floats(i), momentum.floats(i), slope.in(i), copy.out(i)}, step, n);
  });
}

}  // namespace weft
