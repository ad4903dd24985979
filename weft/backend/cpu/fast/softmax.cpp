// Softmax over rows of scores.
#include <algorithm>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

void FastKernels::softmax(const Tensor& y, const Tensor& x) {
  if (!ready({&y, &x}) || x.elements() == 0) return ReferenceKernels::softmax(y, x);
  const Lines to(y);
  const Lines from(x);
  float* room = scratch_.take<float>(threads_ * to.width());
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    float* row = room + fast::me() * to.width();
    for (std::int64_t i = first; i < last; ++i)
      loops_.softmax.forward(to.out(i), from.in(i), row, to.width());
  });
}

void FastKernels::raise_greatest(const Tensor& greatest, const Tensor& rows) {
  if (!ready({&greatest, &rows}) || rows.elements() == 0)
    return ReferenceKernels::raise_greatest(greatest, rows);
  const Lines from(rows);
  const std::int64_t heads = rows.dim(1);
  float* most = greatest.data<float>();
  in_parallel(threads_, heads, rows.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = 0; b < rows.dim(0); ++b)
      for (std::int64_t head = first; head < last; ++head)
        most[head] = std::max(most[head], loops_.softmax.greatest(from.in(b * heads + head), from.width()));
  });
}

void FastKernels::sink_terms(const Tensor& terms, const Tensor& lse, const Tensor& sinks) {
  if (!ready({&terms, &lse, &sinks})) return ReferenceKernels::sink_terms(terms, lse, sinks);
  const Lines to(terms);
  const Lines from(lse);
  const auto floats = [](std::byte* at) { return reinterpret_cast<float*>(at); };
  const float* scores = sinks.data<float>();
  in_parallel(threads_, to.count(), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      loops_.softmax.sink_terms(floats(to.at(i)), floats(from.at(i)), scores, to.width());
  });
}

}  // namespace weft
