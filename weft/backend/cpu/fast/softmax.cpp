// Softmax over rows of scores.
#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

void FastKernels::softmax(const Tensor& y, const Tensor& x, Mask mask, const Tensor& padding) {
  if (!ready({&y, &x}) || (padding && !padding.contiguous()) || x.elements() == 0)
    return ReferenceKernels::softmax(y, x, mask, padding);
  const Lines to(y);
  const Lines from(x);
  const std::int64_t sk = to.width();
  const std::int64_t sq = x.rank() > 1 ? x.dim(-2) : 1;
  const std::int64_t rows_per_batch = x.rank() > 1 ? to.count() / x.dim(0) : 1;
  const std::uint8_t* real = padding ? padding.data<std::uint8_t>() : nullptr;
  float* room = scratch_.take<float>(threads_ * sk);
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    float* row = room + fast::me() * sk;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t reach = mask == Mask::causal ? i % sq + sk - sq + 1 : sk;
      const std::int64_t seen = std::clamp(reach, std::int64_t{0}, sk);
      loops_.softmax.forward(to.out(i), from.in(i), real ? real + i / rows_per_batch * sk : nullptr, seen,
                             row, sk);
    }
  });
}

void FastKernels::softmax_backward(const Tensor& dx, const Tensor& dy, const Tensor& y) {
  if (!ready({&dx, &dy, &y})) return ReferenceKernels::softmax_backward(dx, dy, y);
  const Lines to(dx, {&dy, &y});
  const Lines given(dy);
  const Lines from(y);
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.softmax.backward(to.out(i), given.in(i), from.in(i), to.width());
    loops_.elementwise.finish();
  });
}

void FastKernels::log_sum_exp(const Tensor& out, const Tensor& x) {
  if (!ready({&x}) || !out.contiguous()) return ReferenceKernels::log_sum_exp(out, x);
  const Lines from(x);
  auto* logs = out.data<float>();
  in_parallel(threads_, from.count(), from.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const float greatest = loops_.softmax.greatest(from.in(i), from.width());
      double sum = 0;
      double unused = 0;
      if (std::isfinite(greatest)) loops_.softmax.sums(from.in(i), greatest, from.width(), &sum, &unused);
      logs[i] = std::isfinite(greatest) ? float(double(greatest) + std::log(sum)) : greatest;
    }
  });
}

}  // namespace weft
