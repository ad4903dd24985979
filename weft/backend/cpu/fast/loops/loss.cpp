// The gradient of cross entropy, in place of the logits.
#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/wide.h"

namespace weft::fast::WEFT_ISA {
namespace {

/// slope e^(x - greatest)
template <Walk walk>
struct Gradient {
  template <int n>
  [[gnu::always_inline]] Many<n> operator()(Many<n> x) const {
    const Many<n> off = x - all<n>(row.greatest);
    if constexpr (walk == Walk::f32)
      return all<n>(row.slope) * exponential(off);
    else
      return all<n>(row.slope) * coarse_power(off * all<n>(log2_of_e));
  }
  LossRow row;
};

template <Walk walk>
[[gnu::noinline, gnu::flatten]] void backward_as(Out logits, const LossRow& row, std::int64_t n) {
  const Gradient<walk> gradient = {row};
  const Coming from = {settled<walk>(In{logits.to, logits.type})};
  // The target's is written last, from the logit as it was.
  const bool here = row.target >= 0;
  const Tail target = {row.target, 1};
  const F at_target = here ? gradient(load(from, target)) + all(row.extra) : all(0.0F);
  constexpr int at_once = walk == Walk::bf16 ? 8 : 1;
  map_at_once<walk, at_once>(Outs<1>{{logits}}, n,
                             [&](auto at) { return Results{gradient(load(from, at))}; });
  if (here) store(logits, target, at_target);
}

void backward(Out logits, const LossRow& row, std::int64_t n) {
  const Walk walk = walk_of(logits.type);
  if (walk == Walk::f32) return backward_as<Walk::f32>(logits, row, n);
  if (walk == Walk::bf16) return backward_as<Walk::bf16>(logits, row, n);
  backward_as<Walk::mixed>(logits, row, n);
}

}  // namespace

extern const LossLoops losses;
const LossLoops losses = {.backward = backward};

}  // namespace weft::fast::WEFT_ISA
