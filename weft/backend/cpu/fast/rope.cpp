// Rotary positions: the angles of a step are laid out once for all its heads.
#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

namespace {

/// The position of each step and row of the batch.
class Positions {
 public:
  Positions(const Tensor& x, const RopeArgs& how)
      : given_(how.positions ? how.positions.data<std::int32_t>() : nullptr),
        steps_(x.dim(0)),
        batch_(x.dim(1)),
        by_row_(how.positions && how.positions.rank() == 2) {
    for (std::int64_t i = 0; i < steps_ * batch_; ++i)
      if (at(i) < 0 || at(i) >= how.angles.dim(0))
        fail(Kind::shape, "rope: position ", at(i), " of step ", i / batch_, ", but angles for ",
             how.angles.dim(0), " positions");
  }
  /// i = step * batch + row
  std::int64_t at(std::int64_t i) const {
    const std::int64_t step = i / batch_;
    if (!given_) return step;
    return given_[by_row_ ? i % batch_ * steps_ + step : step];
  }

 private:
  const std::int32_t* given_;
  std::int64_t steps_, batch_;
  bool by_row_;
};

/// [pairs][cosine, sine] as a loop wants them; see loops.h.
void lay_out(const float* angles, std::int64_t pairs, const RopeArgs& how, float* cosines, float* sines) {
  const float sign = how.turn == Turn::forward ? 1 : -1;
  for (std::int64_t p = 0; p < pairs; ++p) {
    const float cosine = angles[2 * p];
    const float sine = sign * angles[2 * p + 1];
    if (how.pairing == Pairing::halves) {
      cosines[p] = cosine;
      sines[p] = sine;
    } else {
      cosines[2 * p] = cosines[2 * p + 1] = cosine;
      sines[2 * p] = -sine;
      sines[2 * p + 1] = sine;
    }
  }
}

}  // namespace

void FastKernels::rope(const Tensor& x, const RopeArgs& how) {
  if (!ready({&x}) || !how.angles.contiguous() || (how.positions && !how.positions.contiguous()) ||
      x.elements() == 0)
    return ReferenceKernels::rope(x, how);
  const Positions positions(x, how);
  const Lines rows(x);
  const std::int64_t pairs = how.angles.dim(1);
  const std::int64_t places = x.dim(0) * x.dim(1);
  const std::int64_t heads = rows.count() / places;
  const auto* angles = how.angles.data<float>();
  float* room = scratch_.take<float>(4 * pairs * threads_);
  const auto turn = how.pairing == Pairing::halves ? loops_.rope.halves : loops_.rope.neighbours;
  in_parallel(threads_, places, rows.elements(), [&](std::int64_t first, std::int64_t last) {
    float* cosines = room + 4 * pairs * fast::me();
    float* sines = cosines + 2 * pairs;
    for (std::int64_t i = first; i < last; ++i) {
      lay_out(angles + positions.at(i) * 2 * pairs, pairs, how, cosines, sines);
      for (std::int64_t head = 0; head < heads; ++head)
        turn(rows.out(i * heads + head), cosines, sines, pairs);
    }
  });
}

}  // namespace weft
