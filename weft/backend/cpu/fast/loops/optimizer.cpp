// One pass over weights and moments: read once, written once, with the copy that layers read.
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {
namespace {

void adam(const AdamRow& row, const AdamStep& step, std::int64_t n) {
  const AdamRow r = row;
  const AdamStep s = step;
  each(n, [&](auto at) {
    const F w = load(r.master, at);
    const F g = load(r.grad, at) * all(s.grad_scale) + all(s.decay) * w;
    const F m = all(s.beta1) * load(r.m, at) + all(s.rest1) * g;
    const F v = all(s.beta2) * load(r.v, at) + all(s.rest2) * (g * g);
    const F next = w * all(s.keep) - all(s.step) * m / (root(v) * all(s.root) + all(s.epsilon));
    store(r.m, at, m);
    store(r.v, at, v);
    store(r.master, at, next);
    if (r.copy.to) store(r.copy, at, next);
  });
}

// m = momentum m + (g + decay w),  w -= rate m
void sgd(const SgdRow& row, const SgdStep& step, std::int64_t n) {
  const SgdRow r = row;
  const SgdStep s = step;
  each(n, [&](auto at) {
    const F w = load(r.master, at);
    const F g = load(r.grad, at) * all(s.grad_scale) + all(s.decay) * w;
    const F m = r.momentum ? all(s.momentum) * load(r.momentum, at) + g : g;
    const F next = w - all(s.rate) * m;
    if (r.momentum) store(r.momentum, at, m);
    store(r.master, at, next);
    if (r.copy.to) store(r.copy, at, next);
  });
}

// ---- moments of fewer bits

constexpr std::int64_t count_of(Whole) { return lanes; }
constexpr std::int64_t count_of(Tail tail) { return tail.count; }

/// f8e5m2 is the upper byte of f16.
template <class At>
[[gnu::always_inline]] inline F load_bytes(const std::uint8_t* from, At at) {
  f16 few[lanes] = {};
  for (std::int64_t i = 0; i < count_of(at); ++i)
    few[i].bits = static_cast<std::uint16_t>(from[at.at + i] << 8);
  return load(few);
}
template <class At>
[[gnu::always_inline]] inline void store_bytes(std::uint8_t* to, At at, F x) {
  f16 few[lanes];
  store(few, x);
  for (std::int64_t i = 0; i < count_of(at); ++i) to[at.at + i] = static_cast<std::uint8_t>(few[i].bits >> 8);
}

/// Down to a multiple of what the mask leaves, or up, the nearer the more often: reference/moments.h.
[[gnu::always_inline]] inline F by_chance(F x, std::uint32_t dice, int dropped, float smallest,
                                          float largest) {
  U h = (as_words(x) ^ all(dice)) * all(0x85ebca6bU);
  h = (h ^ (h >> 15)) * all(0xc2b2ae35U);
  h = h ^ (h >> 13);
  const F size = smaller(absolute(x), all(largest));
  const F shift = choose(size < all(smallest), all(smallest), all(0.0F));
  const U bits = as_words(size + shift) + (h >> (32 - dropped));
  return with_sign(as_floats((bits >> dropped) << dropped) - shift, x);
}

enum class Kept : std::uint8_t { plain, squared };  // what is stored scaled is stored as its root

template <class At>
[[gnu::always_inline]] inline F load(Moment from, Kept kept, At at) {
  if (from.type == MomentType::f32) return load(reinterpret_cast<const float*>(from.from), at);
  if (from.type == MomentType::bf16) return load(reinterpret_cast<const bf16*>(from.from), at);
  const F x = from.type == MomentType::f16
                  ? load(reinterpret_cast<const f16*>(from.from), at) * all(0x1p-13F)
                  : load_bytes(reinterpret_cast<const std::uint8_t*>(from.from), at) * all(0x1p-16F);
  return kept == Kept::squared ? x * x : x;
}
template <class At>
[[gnu::always_inline]] inline void store(Moment to, Kept kept, At at, F x, std::uint32_t dice) {
  if (to.type == MomentType::f32) return store(reinterpret_cast<float*>(to.from), at, x);
  if (to.type == MomentType::bf16) {
    const float largest = __builtin_bit_cast(float, 0x7f7f0000U);
    return store(reinterpret_cast<bf16*>(to.from), at, by_chance(x, dice, 16, 0, largest));
  }
  if (kept == Kept::squared) x = root(x);
  if (to.type == MomentType::f16)
    store(reinterpret_cast<f16*>(to.from), at, by_chance(x * all(0x1p13F), dice, 13, 0x1p-14F, 65504.0F));
  else
    store_bytes(reinterpret_cast<std::uint8_t*>(to.from), at,
                by_chance(x * all(0x1p16F), dice, 21, 0x1p-14F, 57344.0F));
}

void narrow_adam(const NarrowRow& row, const AdamStep& step, std::uint32_t dice, std::int64_t n) {
  const NarrowRow r = row;
  const AdamStep s = step;
  each(n, [&](auto at) {
    const F w = load(r.master, at);
    const F g = load(r.grad, at) * all(s.grad_scale) + all(s.decay) * w;
    const F m = all(s.beta1) * load(r.m, Kept::plain, at) + all(s.rest1) * g;
    const F v = all(s.beta2) * load(r.v, Kept::squared, at) + all(s.rest2) * (g * g);
    const F next = w * all(s.keep) - all(s.step) * m / (root(v) * all(s.root) + all(s.epsilon));
    store(r.m, Kept::plain, at, m, dice);
    store(r.v, Kept::squared, at, v, dice);
    store(r.master, at, next);
    if (r.copy.to) store(r.copy, at, next);
  });
}

// ---- others

// c = beta1 m + (1 - beta1) g,  w = keep w - rate sign(c),  m = beta2 m + (1 - beta2) g
void lion(const SgdRow& row, const LionStep& step, std::int64_t n) {
  const SgdRow r = row;
  const LionStep s = step;
  each(n, [&](auto at) {
    const F g = load(r.grad, at) * all(s.grad_scale);
    const F m = load(r.momentum, at);
    const F c = all(s.beta1) * m + all(s.rest1) * g;
    const F sign = choose(c == all(0.0F), all(0.0F), with_sign(all(1.0F), c));
    const F next = load(r.master, at) * all(s.keep) - all(s.rate) * sign;
    store(r.momentum, at, all(s.beta2) * m + all(s.rest2) * g);
    store(r.master, at, next);
    if (r.copy.to) store(r.copy, at, next);
  });
}

void direction(const DirectionRow& row, const DirectionStep& step, std::int64_t n) {
  const DirectionRow r = row;
  const DirectionStep s = step;
  each(n, [&](auto at) {
    const F w = load(r.master, at);
    const F g = load(static_cast<const float*>(r.grad), at) * all(s.grad_scale) + all(s.grad_decay) * w;
    const F m = all(s.beta1) * load(static_cast<const float*>(r.m), at) + all(s.rest1) * g;
    const F v = all(s.beta2) * load(static_cast<const float*>(r.v), at) + all(s.rest2) * (g * g);
    store(r.m, at, m);
    store(r.v, at, v);
    const F divisor = root(v * all(s.scale2) + all(s.inside)) + all(s.outside);
    store(r.grad, at, m * all(s.scale1) / divisor + all(s.decay) * w);
  });
}

void descend(float* master, Out copy, const float* x, float rate, float keep, std::int64_t n) {
  each(n, [&](auto at) {
    const F next = load(static_cast<const float*>(master), at) * all(keep) - all(rate) * load(x, at);
    store(master, at, next);
    if (copy.to) store(copy, at, next);
  });
}

void take_signs(std::uint8_t* bits, float* x, float size, std::int64_t n) {
  for (std::int64_t i = 0; i < n / 8; ++i) {
    unsigned byte = 0;
    for (int k = 0; k < 8; ++k) {
      const bool up = !(x[8 * i + k] < 0);
      byte |= up ? 128U >> k : 0U;
      x[8 * i + k] -= up ? size : -size;
    }
    bits[i] = static_cast<std::uint8_t>(byte);
  }
}

void add_signs(float* out, const std::uint8_t* bits, float size, std::int64_t n) {
  for (std::int64_t i = 0; i < n / 8; ++i)
    for (int k = 0; k < 8; ++k) out[8 * i + k] += (bits[i] & 128U >> k) != 0 ? size : -size;
}

}  // namespace

extern const OptimizerLoops optimizers;
const OptimizerLoops optimizers = {.adam = adam,
                                   .narrow_adam = narrow_adam,
                                   .sgd = sgd,
                                   .lion = lion,
                                   .direction = direction,
                                   .descend = descend,
                                   .take_signs = take_signs,
                                   .add_signs = add_signs};

}  // namespace weft::fast::WEFT_ISA
