// The gradient of cross entropy, in place of the logits.
#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/order.h"

namespace weft::fast::WEFT_ISA {
namespace {

[[gnu::flatten]] void backward(Out logits, const LossRow& row, std::int64_t n) {
  const auto with = [&](const auto& gradient) {
    // The target's is written last, from the logit as it was.
    const bool here = row.target >= 0;
    const Tail target = {row.target, 1};
    const F at_target = here ? gradient(load(logits, target)) + all(row.extra) : all(0.0F);
    map(logits, walk_of(logits.type), n, [&](auto at) { return gradient(load(logits, at)); });
    if (here) store(logits, target, at_target);
  };
  const F greatest = all(row.greatest);
  const F slope = all(row.slope);
  const F offset = all(row.offset);
  if (logits.type == Type::f32)
    with([=](F x) { return fused(slope, exponential(x - greatest), offset); });
  else
    with([=](F x) { return fused(slope, coarse_power((x - greatest) * all(log2_of_e)), offset); });
}

}  // namespace

extern const LossLoops losses;
const LossLoops losses = {.backward = backward};

}  // namespace weft::fast::WEFT_ISA
