// Powers of two for registers that have no instruction for them: for arithmetic.h only, which includes it
// last.
#pragma once

namespace weft::fast::WEFT_ISA {

/// |x|, but at most the limit.
[[gnu::always_inline]] inline Floats size_within(Floats limit, Floats x) {
  return least(limit, (Floats)((Words)x & 0x7fffffffU));
}
/// x 2^n for whole n in [-151, 250]: in two steps, because one alone cannot reach the denormals.
[[gnu::always_inline]] inline Floats times_power(Floats x, Floats n) {
  const Ints whole = __builtin_convertvector(n, Ints);
  const Ints half = whole >> 1;
  return (x * (Floats)((half + 127) << 23)) * (Floats)((whole - half + 127) << 23);
}
/// t, but no further than just beyond the powers that a float has; and the whole number next to that.
[[gnu::always_inline]] inline Floats in_reach(Floats t) {
  return most(Floats{} - 151.0F, least(Floats{} + 129.0F, t));
}
[[gnu::always_inline]] inline Floats next_whole(Floats reached) { return (reached + 0x1.8p23F) - 0x1.8p23F; }
/// t less the whole number next to it, 0 for what is infinite.
[[gnu::always_inline]] inline Floats beyond_whole(Floats t) {
  const Floats reached = in_reach(t);
  return reached - next_whole(reached);
}
/// x 2^n, rounded once, where n is the whole number next to t and 0.7 <= x <= 1.5.
[[gnu::always_inline]] inline Floats times_whole_power(Floats x, Floats t) {
  return times_power(x, next_whole(in_reach(t)));
}

/// The whole number below t, which is at most 250.
[[gnu::always_inline]] inline Floats floor_of(Floats t) {
  const Floats reached = most(Floats{} - 151.0F, t);
  const Floats whole = next_whole(reached);
  return whole > reached ? whole - 1.0F : whole;
}
/// t less the whole number below it, where t is not negative or its power is of no account.
[[gnu::always_inline]] inline Floats above_floor(Floats t) {
  return most(Floats{} - 151.0F, t) - floor_of(t);
}
/// x 2^n, where n is the whole number below t: rounded once where t is not negative, and the result a float.
[[gnu::always_inline]] inline Floats times_floor_power(Floats x, Floats t) {
  return times_power(x, floor_of(t));
}

}  // namespace weft::fast::WEFT_ISA
