// Pointwise functions and gates, row by row.
#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;
using fast::walk_of;

void FastKernels::activation(const Tensor& y, const Tensor& x, const Tensor& bias, Activation kind) {
  if (!ready({&y, &x, &bias})) return ReferenceKernels::activation(y, x, bias, kind);
  const Lines to(y, {&x});
  const Lines from(x);
  const float* more = arranged(bias, walk_of(to.type(), from.type()), scratch_.take<float>(2 * to.width()));
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.activation.forward(kind, to.out(i), from.in(i), more, to.width());
    loops_.elementwise.finish();
  });
}

void FastKernels::activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                      Activation kind) {
  if (!ready({&dx, &dy, &x, &bias})) return ReferenceKernels::activation_backward(dx, dy, x, bias, kind);
  const Lines to(dx, {&dy, &x});
  const Lines given(dy);
  const Lines from(x);
  const float* more =
      arranged(bias, walk_of(to.type(), given.type(), from.type()), scratch_.take<float>(2 * to.width()));
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.activation.backward(kind, to.out(i), given.in(i), from.in(i), more, to.width());
    loops_.elementwise.finish();
  });
}

void FastKernels::gated(const Tensor& y, const Tensor& x, const Tensor& bias, const Gate& gate) {
  if (!ready({&y, &x, &bias})) return ReferenceKernels::gated(y, x, bias, gate);
  const Lines to(y, {&x});
  const Lines from(x);
  const float* more =
      arranged(bias, walk_of(to.type(), from.type()), scratch_.take<float>(2 * from.width()), 2);
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.activation.gated(gate, to.out(i), from.in(i), more, to.width());
    loops_.elementwise.finish();
  });
}

void FastKernels::gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                 const Gate& gate) {
  if (!ready({&dx, &dy, &x, &bias})) return ReferenceKernels::gated_backward(dx, dy, x, bias, gate);
  const Lines to(dx, {&dy, &x});
  const Lines given(dy);
  const Lines from(x);
  const float* more = arranged(bias, walk_of(to.type(), given.type(), from.type()),
                               scratch_.take<float>(2 * from.width()), 2);
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.activation.gated_backward(gate, to.out(i), given.in(i), from.in(i), more, given.width());
    loops_.elementwise.finish();
  });
}

}  // namespace weft
