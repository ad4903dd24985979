// The gradient of cross entropy, in place of the logits.
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

void backward(Out logits, const LossRow& row, std::int64_t n) {
  const F greatest = all(row.greatest);
  const F slope = all(row.slope);
  const F offset = all(row.offset);
  const auto gradient = [=](F logit) __attribute__((always_inline)) {
    return slope * exponential(logit - greatest) + offset;
  };
  // The target's is written last, from the logit as it was.
  const bool here = row.target >= 0;
  const Tail target = {row.target, 1};
  const F at_target = here ? gradient(load(logits, target)) + all(row.extra) : all(0.0F);
  each(n, [&](auto at) { store(logits, at, gradient(load(logits, at))); });
  if (here) store(logits, target, at_target);
}

}  // namespace

extern const LossLoops losses;
const LossLoops losses = {.backward = backward};

}  // namespace weft::fast::WEFT_ISA
