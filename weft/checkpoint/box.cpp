// Arithmetic of boxes: trailing dimensions that both sides hold whole are walked as one stretch.
#include "weft/checkpoint/box.h"

#include <algorithm>

namespace weft::checkpoint {

bool fits(const Box& box, const Shape& global) {
  if (box.offset.rank() != global.rank() || box.shape.rank() != global.rank()) return false;
  for (int i = 0; i < global.rank(); ++i) {
    if (box.offset[i] < 0 || box.offset[i] > global[i]) return false;
    if (box.shape[i] < 0 || box.shape[i] > global[i] - box.offset[i]) return false;
  }
  return true;
}

std::optional<Box> overlap(const Box& a, const Box& b) {
  Dims offset;
  Dims sizes;
  for (int i = 0; i < a.offset.rank(); ++i) {
    const std::int64_t first = std::max(a.offset[i], b.offset[i]);
    const std::int64_t last = std::min(a.offset[i] + a.shape[i], b.offset[i] + b.shape[i]);
    if (last <= first) return std::nullopt;
    offset.push_back(first);
    sizes.push_back(last - first);
  }
  return Box{Shape(offset), Shape(sizes)};
}

void each_run(const Box& common, const Box& from, const Box& to,
              const std::function<void(const Run&)>& each) {
  const int rank = common.shape.rank();
  int outer = rank;
  std::int64_t count = 1;
  while (outer > 0) {
    --outer;
    count *= common.shape[outer];
    if (common.shape[outer] != from.shape[outer] || common.shape[outer] != to.shape[outer]) break;
  }
  const Strides from_steps = contiguous_strides(from.shape);
  const Strides to_steps = contiguous_strides(to.shape);
  std::int64_t runs = 1;
  for (int i = 0; i < outer; ++i) runs *= common.shape[i];
  for (std::int64_t n = 0; n < runs; ++n) {
    Run run{.count = count};
    std::int64_t left = n;
    for (int i = rank - 1; i >= 0; --i) {
      std::int64_t at = common.offset[i];
      if (i < outer) {
        at += left % common.shape[i];
        left /= common.shape[i];
      }
      run.from += (at - from.offset[i]) * from_steps[i];
      run.to += (at - to.offset[i]) * to_steps[i];
    }
    each(run);
  }
}

}  // namespace weft::checkpoint
