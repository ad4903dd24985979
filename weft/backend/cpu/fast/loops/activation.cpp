// Pointwise functions and their derivatives, alone and as gates.
#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/wide.h"

namespace weft::fast::WEFT_ISA {
namespace {

/// A function and its slope at one place.
template <int n>
struct Both {
  Many<n> value, slope;
};

struct Identity {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return x;
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    return {x, all<n>(1.0F)};
  }
};

// x (1 + tanh u) / 2 = x sigmoid(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3); in powers of two
constexpr float gelu_first = 2.3022081983F, gelu_third = 0.1029432397F;
/// The slope of 2 u.
template <int n>
[[gnu::always_inline]] inline Many<n> gelu_inner_slope(Many<n> square) {
  return fused(all<n>(0.2140644488F), square, all<n>(1.595769122F));
}
/// Worth so many sixteens at once; in bf16, rough.
template <int sixteens>
struct Long {
  static constexpr int at_once = sixteens;
};
template <class Function>
constexpr int at_once() {
  if constexpr (requires { Function::at_once; })
    return Function::at_once;
  else
    return 1;
}

struct Gelu : Long<4> {
  template <int n>
  [[gnu::always_inline]] static Many<n> share(Many<n> x, Many<n> square) {
    return share_beside_power(x * fused(all<n>(-gelu_third), square, all<n>(-gelu_first)));
  }
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return x * share(x, x * x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    x = most(all<n>(-1e6F), least(all<n>(1e6F), x));  // x^2 stays finite
    const Many<n> square = x * x;
    const Many<n> s = share(x, square);
    const Many<n> value = x * s;
    return {value, fused(value * (all<n>(1.0F) - s), gelu_inner_slope(square), s)};
  }
};

// x Phi(x) = max(x, 0) - |x| Phi(-|x|)
struct GeluErf : Long<4> {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    const Quotient<n> tail = tail_over_bell(x);
    return fused(-(tail.size * bell(x) * tail.over), over(tail.under), most(all<n>(0.0F), x));
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    x = most(all<n>(-1e6F), least(all<n>(1e6F), x));
    const Quotient<n> tail = tail_over_bell(x);
    const Many<n> height = bell(x);
    const Many<n> share = height * tail.over * over(tail.under);
    const Many<n> below = choose(x < all<n>(0.0F), share, all<n>(1.0F) - share);
    return {x * below, fused(x * all<n>(0.3989422804F), height, below)};
  }
};

template <class Scale>
struct Swish : Long<4> {  // x sigmoid(scale x)
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return x * share_beside_power(all<n>(-Scale::in_powers) * x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    const Many<n> s = share_beside_power(all<n>(-Scale::in_powers) * x);
    const Many<n> value = x * s;
    return {value, fused(all<n>(Scale::scale) * value, all<n>(1.0F) - s, s)};
  }
};
struct One {
  static constexpr float scale = 1, in_powers = log2_of_e;
};
struct Quick {
  static constexpr float scale = 1.702F, in_powers = 2.4554669595F;
};

// ---- the same, to be rounded to bf16: within 1.1e-4, with no division

struct RoughGelu : Long<8> {
  // Below, t is beyond 127.9 and the result below 3e-37.
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    x = most(all<n>(-10.05F), x);
    const Many<n> factor = fused(all<n>(-gelu_third), x * x, all<n>(-gelu_first));
    return RoughSigmoid<n>(x, factor).times(x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> in) {
    const Many<n> x = most(all<n>(-10.05F), in);
    const Many<n> near = least(all<n>(10.05F), x);
    const Many<n> square = near * near;
    const RoughSigmoid<n> s(near, fused(all<n>(-gelu_third), square, all<n>(-gelu_first)));
    const Many<n> share = s.eighth.guess * s.eighth.better;
    const Many<n> others = all<n>(8.0F) * s.rest * share;
    return {x * share, fused(near * share * others, gelu_inner_slope(square), share)};
  }
};

struct RoughGeluErf : Long<8> {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    const Many<n> size = size_within(all<n>(farthest), x);
    return fused(size * all<n>(-in_tails), rough_tail(size), most(all<n>(0.0F), x));
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    const Many<n> size = size_within(all<n>(farthest), x);
    const Many<n> share = all<n>(in_tails) * rough_tail(size);
    const Many<n> below = choose(x < all<n>(0.0F), share, all<n>(1.0F) - share);
    const Many<n> near = most(all<n>(-farthest), least(all<n>(farthest), x));
    return {x * below, fused(near * all<n>(0.3989422804F), rough_bell(size), below)};
  }
};

template <class Scale>
struct RoughSwish : Long<8> {
  // 127.9 powers
  static constexpr float least_x = -127.9F / Scale::in_powers;
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    x = most(all<n>(least_x), x);
    return RoughSigmoid<n>(x, all<n>(-Scale::in_powers)).times(x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> in) {
    const Many<n> x = most(all<n>(least_x), in);
    const RoughSigmoid<n> s(x, all<n>(-Scale::in_powers));
    const Many<n> share = s.eighth.guess * s.eighth.better;
    const Many<n> value = x * share;
    return {value, fused(all<n>(8 * Scale::scale) * s.rest * share, value, share)};
  }
};

// Written so that NaN stays NaN.
struct Relu {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return most(all<n>(0.0F), x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    return {value(x), choose(all<n>(0.0F) < x, all<n>(1.0F), all<n>(0.0F))};
  }
};

struct SquaredRelu {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return square(Relu::value(x));
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    const Many<n> positive = Relu::value(x);
    return {square(positive), positive + positive};
  }
};

struct Tanh {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return hyperbolic_tangent(x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    const Many<n> y = hyperbolic_tangent(x);
    return {y, all<n>(1.0F) - square(y)};
  }
};

struct Sigmoid {
  template <int n>
  [[gnu::always_inline]] static Many<n> value(Many<n> x) {
    return sigmoid(x);
  }
  template <int n>
  [[gnu::always_inline]] static Both<n> both(Many<n> x) {
    const Many<n> s = sigmoid(x);
    return {s, s * (all<n>(1.0F) - s)};
  }
};

/// What is rounded to bf16 from bf16 may be rough.
template <Walk walk, class Rough, class Fine>
[[gnu::always_inline]] inline auto fit(Rough rough, Fine fine) {
  if constexpr (walk == Walk::bf16)
    return rough;
  else
    return fine;
}

/// A function as loops call it. Where a product and a sum in one are calls, another call a sixteen is nothing
/// beside them, and the functions are not written out once more in every loop.
template <class Function>
struct Called : Function {
#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
  template <int n>
  [[gnu::noinline]] static Many<n> value(Many<n> x) {
    return Function::value(x);
  }
  template <int n>
  [[gnu::noinline]] static Both<n> both(Many<n> x) {
    return Function::both(x);
  }
#endif
};

/// work<walk>(function)
template <Walk walk, class Work>
[[gnu::always_inline]] inline void with(Activation f, const Work& work) {
  switch (f) {
    case Activation::identity:
      return work.template operator()<walk>(Identity{});
    case Activation::gelu:
      return work.template operator()<walk>(fit<walk>(RoughGelu{}, Gelu{}));
    case Activation::gelu_erf:
      return work.template operator()<walk>(fit<walk>(RoughGeluErf{}, GeluErf{}));
    case Activation::quick_gelu:
      return work.template operator()<walk>(fit<walk>(RoughSwish<Quick>{}, Swish<Quick>{}));
    case Activation::silu:
      return work.template operator()<walk>(fit<walk>(RoughSwish<One>{}, Swish<One>{}));
    case Activation::relu:
      return work.template operator()<walk>(Relu{});
    case Activation::squared_relu:
      return work.template operator()<walk>(SquaredRelu{});
    case Activation::tanh:
      return work.template operator()<walk>(Tanh{});
    case Activation::sigmoid:
      return work.template operator()<walk>(Sigmoid{});
  }
}
template <class Work>
[[gnu::always_inline]] inline void with(Activation f, Walk walk, const Work& work) {
  if (walk == Walk::bf16) return with<Walk::bf16>(f, work);
  if (walk == Walk::f32) return with<Walk::f32>(f, work);
  with<Walk::mixed>(f, work);
}

/// x + bias, where there is one.
template <class At>
[[gnu::always_inline]] inline auto biased(Coming x, const float* bias, At at) {
  const auto in = load(x, at);
  return bias ? in + along(bias, at) : in;
}

// Each function in each walk is a piece of code of its own: compilers take far longer over all of them in
// one.

template <Walk walk, class Function>
[[gnu::noinline, gnu::flatten]] void forward_as(Out to, In from, const float* bias, std::int64_t n) {
  const Coming x = {settled<walk>(from)};
  map_at_once<walk, at_once<Function>()>(
      Outs<1>{{to}}, n, [&](auto at) { return Results{Function::value(biased(x, bias, at))}; });
}

template <Walk walk, class Function>
[[gnu::noinline, gnu::flatten]] void backward_as(Out to, In given, In from, const float* bias,
                                                 std::int64_t n) {
  const Coming dy = {settled<walk>(given)};
  const Coming x = {settled<walk>(from)};
  map_at_once<walk, at_once<Function>()>(Outs<1>{{to}}, n, [&](auto at) {
    return Results{load(dy, at) * Function::both(biased(x, bias, at)).slope};
  });
}

/// Within a gate's limit, from above or from both sides. What is no number stays none.
template <int n>
[[gnu::always_inline]] inline Many<n> below(float limit, Many<n> x) {
  return least(all<n>(limit), x);
}
template <int n>
[[gnu::always_inline]] inline Many<n> between(float limit, Many<n> x) {
  return most(all<n>(-limit), below(limit, x));
}
/// What a half's gradient is where it was cut off: zero.
template <int n>
[[gnu::always_inline]] inline Many<n> unless_above(float limit, Many<n> x, Many<n> gradient) {
  return choose(all<n>(limit) < x, all<n>(0.0F), gradient);
}
template <int n>
[[gnu::always_inline]] inline Many<n> unless_beyond(float limit, Many<n> x, Many<n> gradient) {
  return choose(x < all<n>(-limit), all<n>(0.0F), unless_above(limit, x, gradient));
}
template <int n>
[[gnu::always_inline]] inline Many<n> operator+(Many<n> x, float more) {
  return x + all<n>(more);
}

template <Walk walk, class Function>
[[gnu::noinline, gnu::flatten]] void gated_as(const Gate& kind, Out to, In from, const float* bias,
                                              std::int64_t n) {
  const float* up_bias = bias ? bias + n : nullptr;
  const Coming x = {settled<walk>(from)};
  const Coming up = {after(x.in, n)};
  map_at_once<walk, at_once<Function>()>(Outs<1>{{to}}, n, [&](auto at) {
    const auto gate = below(kind.limit, biased(x, bias, at));
    const auto let = between(kind.limit, biased(up, up_bias, at)) + kind.offset;
    return Results{Function::value(gate) * let};
  });
}

template <Walk walk, class Function>
[[gnu::noinline, gnu::flatten]] void gated_backward_as(const Gate& kind, Out to, In given, In from,
                                                       const float* bias, std::int64_t n) {
  const Outs<2> both = {{to, after(to, n)}};
  const float* up_bias = bias ? bias + n : nullptr;
  const Coming dy = {settled<walk>(given)};
  const Coming x = {settled<walk>(from)};
  const Coming up = {after(x.in, n)};
  map_at_once<walk, at_once<Function>()>(both, n, [&](auto at) {
    const auto by = biased(x, bias, at);
    const auto let = biased(up, up_bias, at);
    const auto gate = Function::both(below(kind.limit, by));
    const auto d = load(dy, at);
    return Results{unless_above(kind.limit, by, d * (between(kind.limit, let) + kind.offset) * gate.slope),
                   unless_beyond(kind.limit, let, d * gate.value)};
  });
}

void forward(Activation f, Out to, In from, const float* bias, std::int64_t n) {
  with(f, walk_of(to.type, from.type),
       [&]<Walk walk>(auto function) { forward_as<walk, Called<decltype(function)>>(to, from, bias, n); });
}

void backward(Activation f, Out to, In given, In from, const float* bias, std::int64_t n) {
  with(f, walk_of(to.type, given.type, from.type), [&]<Walk walk>(auto function) {
    backward_as<walk, Called<decltype(function)>>(to, given, from, bias, n);
  });
}

void gated(const Gate& gate, Out to, In from, const float* bias, std::int64_t n) {
  with(gate.f, walk_of(to.type, from.type), [&]<Walk walk>(auto function) {
    gated_as<walk, Called<decltype(function)>>(gate, to, from, bias, n);
  });
}

void gated_backward(const Gate& gate, Out to, In given, In from, const float* bias, std::int64_t n) {
  with(gate.f, walk_of(to.type, given.type, from.type), [&]<Walk walk>(auto function) {
    gated_backward_as<walk, Called<decltype(function)>>(gate, to, given, from, bias, n);
  });
}

}  // namespace

extern const ActivationLoops activations;
const ActivationLoops activations = {
    .forward = forward, .backward = backward, .gated = gated, .gated_backward = gated_backward};

}  // namespace weft::fast::WEFT_ISA
