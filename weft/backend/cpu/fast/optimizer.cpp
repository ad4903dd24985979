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

fast::LionStep step_of(const LionArgs& how) {
  return {.beta1 = how.beta1,
          .rest1 = float(1 - double(how.beta1)),
          .beta2 = how.beta2,
          .rest2 = float(1 - double(how.beta2)),
          .rate = how.rate,
          .keep = float(1 - double(how.rate) * double(how.decay)),
          .grad_scale = how.grad_scale};
}

fast::DirectionStep direction_of(const AdamArgs& how) {
  return {.beta1 = how.beta1,
          .rest1 = float(1 - double(how.beta1)),
          .beta2 = how.beta2,
          .rest2 = float(1 - double(how.beta2)),
          .scale1 = float(1 / double(how.correction1)),
          .scale2 = float(1 / double(how.correction2)),
          .inside = how.epsilon_inside ? how.epsilon : 0,
          .outside = how.epsilon_inside ? 0 : how.epsilon,
          .decay = how.decoupled ? how.decay : 0,
          .grad_decay = how.decoupled ? 0 : how.decay,
          .grad_scale = how.grad_scale};
}

fast::MomentType type_of_moment(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return fast::MomentType::bf16;
    case Dtype::f16:
      return fast::MomentType::f16;
    case Dtype::f8e5m2:
      return fast::MomentType::f8e5m2;
    default:
      return fast::MomentType::f32;
  }
}

/// A flat moment of any type from an element on.
struct FlatMoment {
  explicit FlatMoment(const Tensor& tensor)
      : bytes(static_cast<std::byte*>(tensor.address())),
        size(size_of(tensor.dtype())),
        type(type_of_moment(tensor.dtype())) {}
  fast::Moment from(std::int64_t element) const { return {bytes + element * size, type}; }
  std::byte* bytes;
  std::int64_t size;
  fast::MomentType type;
};

bool all_f32(std::initializer_list<const Tensor*> tensors) {
  return std::ranges::all_of(tensors, [](const Tensor* t) { return t->dtype() == Dtype::f32; });
}

}  // namespace

void FastKernels::adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  if (how.epsilon_inside || !ready({&grad, &state.copy}) ||
      !whole({&state.master, &state.m, &state.v, &state.copy, &grad}))
    return ReferenceKernels::adam(state, grad, how);
  if (!all_f32({&state.m, &state.v})) return narrow_adam(state, grad, how);
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

void FastKernels::narrow_adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  const Flat master(state.master);
  const FlatMoment m(state.m);
  const FlatMoment v(state.v);
  const Flat slope(grad);
  const Flat copy(state.copy, {&grad});
  const fast::AdamStep step = step_of(how);
  by_stretches(threads_, grad.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.narrow_adam({master.floats(i), m.from(i), v.from(i), slope.in(i), copy.out(i)}, step,
                                 how.dice, n);
  });
}

void FastKernels::lion(const SgdState& state, const Tensor& grad, const LionArgs& how) {
  if (!ready({&grad, &state.copy}) || !whole({&state.master, &state.momentum, &state.copy, &grad}))
    return ReferenceKernels::lion(state, grad, how);
  const Flat master(state.master);
  const Flat momentum(state.momentum);
  const Flat slope(grad);
  const Flat copy(state.copy, {&grad});
  const fast::LionStep step = step_of(how);
  by_stretches(threads_, grad.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.lion({master.floats(i), momentum.floats(i), slope.in(i), copy.out(i)}, step, n);
  });
}

void FastKernels::adam_direction(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  const Flat master(state.master);
  const Flat m(state.m);
  const Flat v(state.v);
  const Flat slope(grad);
  const fast::DirectionStep step = direction_of(how);
  by_stretches(threads_, grad.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.direction({master.floats(i), m.floats(i), v.floats(i), slope.floats(i)}, step, n);
  });
}

void FastKernels::descend(const Tensor& master, const Tensor& copied, const Tensor& x,
                          const DescentArgs& how) {
  const Flat weights(master);
  const Flat direction(x);
  const Flat copy(copied, {&x});
  const float rate = how.by ? how.rate * *how.by.data<float>() : how.rate;
  by_stretches(threads_, x.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.descend(weights.floats(i), copy.out(i), direction.floats(i), rate, how.keep, n);
  });
}

void FastKernels::root(const Tensor& out, const Tensor& x, float epsilon) {
  const Flat to(out);
  const Flat from(x);
  by_stretches(threads_, x.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    float* y = to.floats(i);
    const float* v = from.floats(i);
    for (std::int64_t k = 0; k < n; ++k) y[k] = std::sqrt(v[k]) + epsilon;
  });
}

void FastKernels::take_signs(const Tensor& bits, const Tensor& x, const Tensor& size) {
  const float by = *size.data<float>();
  auto* bytes = static_cast<std::uint8_t*>(bits.address());
  const Flat numbers(x);
  by_stretches(threads_, x.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.take_signs(bytes + i / 8, numbers.floats(i), by, n);
  });
}

void FastKernels::add_signs(const Tensor& out, const Tensor& bits, const Tensor& size, float share) {
  const float by = *size.data<float>() / share;
  const auto* bytes = static_cast<const std::uint8_t*>(bits.address());
  const Flat numbers(out);
  by_stretches(threads_, out.elements(), loops_, [&](std::int64_t i, std::int64_t n) {
    loops_.optimizer.add_signs(numbers.floats(i), bytes + i / 8, by, n);
  });
}

}  // namespace weft
