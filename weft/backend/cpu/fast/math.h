// Exponentials and their kin, number by number: the same bits on every instruction set. For sources of
// loops/ only.
#pragma once

#include <arithmetic.h>

#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

/// a b + c, rounded once where the set has an instruction for it.
template <int n>
[[gnu::always_inline]] inline Many<n> added_product(Many<n> a, Many<n> b, Many<n> c) {
  for (int i = 0; i < n; ++i) a.part[i] = added_product(a.part[i], b.part[i], c.part[i]);
  return a;
}
/// a b + c, rounded once.
template <int n>
[[gnu::always_inline]] inline Many<n> fused(Many<n> a, Many<n> b, Many<n> c) {
  for (int i = 0; i < n; ++i) a.part[i] = fused(a.part[i], b.part[i], c.part[i]);
  return a;
}
/// The second where either is no number.
template <int n>
[[gnu::always_inline]] inline Many<n> least(Many<n> a, Many<n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = least(a.part[i], b.part[i]);
  return a;
}
template <int n>
[[gnu::always_inline]] inline Many<n> most(Many<n> a, Many<n> b) {
  for (int i = 0; i < n; ++i) a.part[i] = most(a.part[i], b.part[i]);
  return a;
}
/// |x|, but at most the limit; whatever it is where x is no number.
template <int n>
[[gnu::always_inline]] inline Many<n> size_within(Many<n> limit, Many<n> x) {
  for (int i = 0; i < n; ++i) x.part[i] = size_within(limit.part[i], x.part[i]);
  return x;
}
template <int n>
[[gnu::always_inline]] inline Many<n> times_power(Many<n> x, Many<n> by) {
  for (int i = 0; i < n; ++i) x.part[i] = times_power(x.part[i], by.part[i]);
  return x;
}
template <int n>
[[gnu::always_inline]] inline Many<n> times_whole_power(Many<n> x, Many<n> t) {
  for (int i = 0; i < n; ++i) x.part[i] = times_whole_power(x.part[i], t.part[i]);
  return x;
}
template <int n>
[[gnu::always_inline]] inline Many<n> beyond_whole(Many<n> t) {
  for (int i = 0; i < n; ++i) t.part[i] = beyond_whole(t.part[i]);
  return t;
}
template <int n>
[[gnu::always_inline]] inline Many<n> times_floor_power(Many<n> x, Many<n> t) {
  for (int i = 0; i < n; ++i) x.part[i] = times_floor_power(x.part[i], t.part[i]);
  return x;
}
template <int n>
[[gnu::always_inline]] inline Many<n> above_floor(Many<n> t) {
  for (int i = 0; i < n; ++i) t.part[i] = above_floor(t.part[i]);
  return t;
}

/// c[0] + c[1] x + c[2] x^2 + …
template <int n, int terms>
[[gnu::always_inline]] inline Many<n> polynomial(Many<n> x, const float (&c)[terms]) {
  Many<n> sum = all<n>(c[terms - 1]);
  for (int i = terms - 2; i >= 0; --i) sum = fused(sum, x, all<n>(c[i]));
  return sum;
}

/// 2^t, as good as a polynomial of beyond_whole(t) with these coefficients. NaN stays NaN.
template <int n, int terms>
[[gnu::always_inline]] inline Many<n> power_by(Many<n> t, const float (&c)[terms]) {
  return times_whole_power(polynomial(beyond_whole(t), c), t);
}
/// 2^t within 2 units in the last place, down to the denormals and up to infinity.
template <int n>
[[gnu::always_inline]] inline Many<n> power(Many<n> t) {
  constexpr float c[] = {1.0F,           0.693147182F,   0.240226477F,  0.0555033237F,
                         0.00961843692F, 0.00133988739F, 0.00015353362F};
  return power_by(t, c);
}
/// Within 1e-7 of it, to be added up.
template <int n>
[[gnu::always_inline]] inline Many<n> summed_power(Many<n> t) {
  constexpr float c[] = {1.0F, 0.693147004F, 0.240222424F, 0.0555073358F, 0.00967151299F, 0.00132647273F};
  return power_by(t, c);
}
/// Within 3e-6 of it, to be rounded to sixteen bits.
template <int n>
[[gnu::always_inline]] inline Many<n> coarse_power(Many<n> t) {
  constexpr float c[] = {1.0F, 0.693124175F, 0.240240991F, 0.0559064262F, 0.00958285294F};
  return power_by(t, c);
}
/// 2^(t - raised) within 8e-5, to be rounded to bf16; t <= 250. Powers are given raised because of a t that
/// is not negative every processor takes the floor, and what is above it, in a step and exactly. Where t is
/// negative, the last bits depend on the processor.
inline constexpr float raised = 122;
template <int n>
[[gnu::always_inline]] inline Many<n> rough_power(Many<n> t) {
  constexpr float unit = 0x1p-122F;
  constexpr float c[] = {0.999925224F * unit, 0.695833538F * unit, 0.226067155F * unit, 0.0780245225F * unit};
  return times_floor_power(polynomial(above_floor(t), c), t);
}

/// 1 / (8 d) within 4e-5, as a product; 0 < d < 2^125. A guess by the bits of d is off by a twentieth: d
/// guess is between 0.475 and 0.526, and there u (flat + (u - middle)^2) is next to 1 / 8.
template <int n>
struct Eighth {
  Many<n> guess, better;
};
template <int n>
[[gnu::always_inline]] inline Eighth<n> eighth_over(Many<n> d) {
  const Many<n> guess = as_floats(all<n>(0x7e73340bU) - as_words(d));
  const Many<n> off = fused(d, guess, all<n>(-0.750480568F));
  return {guess, fused(off, off, all<n>(0.187259764F))};
}

/// 1 / (1 + 2^t) = guess better, within 1.1e-4, to be rounded to bf16; t <= 127.9.
template <int n>
struct RoughSigmoid {
  [[gnu::always_inline]] RoughSigmoid(Many<n> a, Many<n> b)  // t = a b
      : rest(rough_power(fused(a, b, all<n>(raised - 3)))), eighth(eighth_over(rest + all<n>(0.125F))) {}
  // In this order nothing is beyond x on the way.
  [[gnu::always_inline]] Many<n> times(Many<n> x) const { return x * eighth.better * eighth.guess; }
  Many<n> rest;  // 2^t / 8
  Eighth<n> eighth;
};

/// 1 / d within 2 units in the last place, where 2^-100 <= d <= 2^100: the same with a step of Newton's,
/// which on many processors is several times faster than a division.
template <int n>
[[gnu::always_inline]] inline Many<n> over(Many<n> d) {
  const Many<n> guess = as_floats(all<n>(0x7ef3340bU) - as_words(d));
  const Many<n> off = fused(d, guess, all<n>(-1.500961136F));
  const Many<n> near = guess * fused(off, off, all<n>(0.749039056F));
  return fused(near, fused(-near, d, all<n>(1.0F)), near);
}

inline constexpr float log2_of_e = 1.44269504F;

/// e^x within 2 units in the last place, down to the denormals and up to infinity. NaN stays NaN. power(x
/// log2 e) is cheaper, and further off by x / 2 units.
template <int n>
[[gnu::always_inline]] inline Many<n> exponential(Many<n> x) {
  x = most(all<n>(-104.0F), least(all<n>(89.0F), x));
  // x = whole log 2 + r, |r| <= log 2 / 2
  const Many<n> magic = all<n>(0x1.8p23F);
  const Many<n> whole = fused(x, all<n>(log2_of_e), magic) - magic;
  const Many<n> r = fused(whole, all<n>(2.12194440e-4F), fused(whole, all<n>(-0.693359375F), x));
  constexpr float c[] = {1.0F, 1.0F, 0.49999994F, 0.16666429F, 4.166802E-2F, 8.37439E-3F, 1.38434E-3F};
  return times_power(polynomial(r, c), whole);
}

/// 1 / (1 + 2^t). What is divided by is never far from 1.
template <int n>
[[gnu::always_inline]] inline Many<n> share_beside_power(Many<n> t) {
  const Many<n> small = power(as_floats(as_words(t) | all<n>(0x80000000U)));
  return choose(all<n>(0.0F) < t, small, all<n>(1.0F)) * over(all<n>(1.0F) + small);
}
template <int n>
[[gnu::always_inline]] inline Many<n> sigmoid(Many<n> x) {
  return share_beside_power(all<n>(-log2_of_e) * x);
}

template <int n>
[[gnu::always_inline]] inline Many<n> hyperbolic_tangent(Many<n> x) {
  const Many<n> size = absolute(x);
  // Small x: x + x^3 p(x^2), because 1 - 2 e^-2x / (1 + e^-2x) cancels there.
  const Many<n> z = x * x;
  constexpr float c[] = {-3.33332819422E-1F, 1.33314422036E-1F, -5.37397155531E-2F, 2.06390887954E-2F,
                         -5.70498872745E-3F};
  const Many<n> small = fused(x, z * polynomial(z, c), x);
  const Many<n> beside = power(all<n>(-2 * log2_of_e) * size);
  const Many<n> large = fused(all<n>(-2.0F) * beside, over(all<n>(1.0F) + beside), all<n>(1.0F));
  return choose(size < all<n>(0.625F), small, with_sign(large, x));
}

/// e^(-x^2 / 2)
template <int n>
[[gnu::always_inline]] inline Many<n> bell(Many<n> x) {
  return power(all<n>(-0.72134752F) * (x * x));
}

/// The normal distribution's share beyond |x|, over bell(x): erfcx(|x| / sqrt 2) / 2 as a quotient.
template <int n>
struct Quotient {
  Many<n> over, under, size;  // size: |x|, at most 20
};
/// Within 1e-8.
template <int n>
[[gnu::always_inline]] inline Quotient<n> tail_over_bell(Many<n> x) {
  const Many<n> z = size_within(all<n>(20.0F), x);  // beyond, the bell is 0
  constexpr float over[] = {0.5F, 0.438296877F, 0.183236555F, 4.06337014E-2F, 4.11637876E-3F};
  constexpr float under[] = {1.0F, 1.67447874F, 1.20250905F, 0.469474369F, 0.101860031F, 1.03181117E-2F};
  return {polynomial(z, over), polynomial(z, under), z};
}

/// The same, to be rounded to bf16, where 0 <= size <= farthest.
inline constexpr float farthest = 13;
template <int n>
[[gnu::always_inline]] inline Many<n> rough_bell(Many<n> size) {
  return rough_power(fused(size, all<n>(-0.72134752F) * size, all<n>(raised)));
}
/// 256 times the normal distribution's share beyond size, within 1.1e-4 of it: its logarithm is so smooth
/// that a polynomial does.
template <int n>
[[gnu::always_inline]] inline Many<n> rough_tail(Many<n> size) {
  constexpr float c[] = {raised + 8 - 1.00002572F, -1.151051F,      -0.458636255F,  -0.0540889047F,
                         0.00872332107F,           -1.03439964e-3F, 8.55303572e-5F, -4.61734776e-6F,
                         1.45288609e-7F,           -2.01241017e-9F};
  return rough_power(polynomial(size, c));
}
inline constexpr float in_tails = 0x1p-8F;

}  // namespace weft::fast::WEFT_ISA
