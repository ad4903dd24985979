// Pointwise functions and their derivatives, alone and as gates.
#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/order.h"

namespace weft::fast::WEFT_ISA {
namespace {

/// A function and its slope at one place.
struct Both {
  F value, slope;
};

struct Identity {
  static F value(F x) { return x; }
  static Both both(F x) { return {x, all(1.0F)}; }
};

// x (1 + tanh u) / 2 = x sigmoid(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3); in powers of two
struct Gelu {
  static F inner(F x, F square) { return x * fused(all(0.1029432397F), square, all(2.3022081983F)); }
  static F value(F x) { return x / (all(1.0F) + power(all(0.0F) - inner(x, x * x))); }
  static Both both(F x) {
    x = most(all(-1e6F), least(all(1e6F), x));  // x^2 stays finite
    const F square = x * x;
    const F s = sigmoid_of_power(inner(x, square));
    const F value = x * s;
    return {value, fused(value * (all(1.0F) - s), fused(all(0.2140644488F), square, all(1.595769122F)), s)};
  }
};

// x Phi(x) = max(x, 0) - |x| Phi(-|x|)
struct GeluErf {
  static F value(F x) {
    const Quotient tail = tail_over_bell(x);
    const F lost = tail.size * bell(x) * tail.over / tail.under;
    return most(all(0.0F), x) - lost;
  }
  static Both both(F x) {
    x = most(all(-1e6F), least(all(1e6F), x));
    const Quotient tail = tail_over_bell(x);
    const F height = bell(x);
    const F share = height * tail.over / tail.under;
    const F below = choose(x < all(0.0F), share, all(1.0F) - share);
    return {x * below, fused(x * all(0.3989422804F), height, below)};
  }
};

template <class Scale>
struct Swish {  // x sigmoid(scale x)
  static F value(F x) { return x / (all(1.0F) + power(all(-Scale::in_powers) * x)); }
  static Both both(F x) {
    const F s = sigmoid_of_power(all(Scale::in_powers) * x);
    const F value = x * s;
    return {value, fused(all(Scale::scale) * value, all(1.0F) - s, s)};
  }
};
struct One {
  static constexpr float scale = 1, in_powers = log2_of_e;
};
struct Quick {
  static constexpr float scale = 1.702F, in_powers = 2.4554669595F;
};
using Silu = Swish<One>;
using QuickGelu = Swish<Quick>;

// Written so that NaN stays NaN.
struct Relu {
  static F value(F x) { return most(all(0.0F), x); }
  static Both both(F x) { return {value(x), choose(all(0.0F) < x, all(1.0F), all(0.0F))}; }
};

struct SquaredRelu {
  static F value(F x) { return square(Relu::value(x)); }
  static Both both(F x) {
    const F positive = Relu::value(x);
    return {square(positive), positive + positive};
  }
};

struct Tanh {
  static F value(F x) { return hyperbolic_tangent(x); }
  static Both both(F x) {
    const F y = hyperbolic_tangent(x);
    return {y, all(1.0F) - square(y)};
  }
};

struct Sigmoid {
  static F value(F x) { return sigmoid(x); }
  static Both both(F x) {
    const F s = sigmoid(x);
    return {s, s * (all(1.0F) - s)};
  }
};

template <class Work>
[[gnu::always_inline]] inline void with(Activation f, const Work& work) {
  switch (f) {
    case Activation::identity:
      return work(Identity{});
    case Activation::gelu:
      return work(Gelu{});
    case Activation::gelu_erf:
      return work(GeluErf{});
    case Activation::quick_gelu:
      return work(QuickGelu{});
    case Activation::silu:
      return work(Silu{});
    case Activation::relu:
      return work(Relu{});
    case Activation::squared_relu:
      return work(SquaredRelu{});
    case Activation::tanh:
      return work(Tanh{});
    case Activation::sigmoid:
      return work(Sigmoid{});
  }
}

/// x + bias, where there is one.
template <class At>
[[gnu::always_inline]] inline F biased(In x, const float* bias, At at) {
  const F in = load(x, at);
  return bias ? in + along(bias, at) : in;
}

In second_half(In x, std::int64_t n) {
  const std::int64_t size = x.type == Type::f32 ? 4 : 2;
  return {static_cast<const char*>(x.from) + n * size, x.type};
}
Out second_half(Out x, std::int64_t n) {
  const std::int64_t size = x.type == Type::f32 ? 4 : 2;
  return {static_cast<char*>(x.to) + n * size, x.type, x.past};
}

[[gnu::flatten]] void forward(Activation f, Out y, In x, const float* bias, std::int64_t n) {
  with(f, [&](auto function) {
    map(y, walk_of(y.type, x.type), n, [&](auto at) { return function.value(biased(x, bias, at)); });
  });
}

[[gnu::flatten]] void backward(Activation f, Out dx, In dy, In x, const float* bias, std::int64_t n) {
  with(f, [&](auto function) {
    map(dx, walk_of(dx.type, dy.type, x.type), n,
        [&](auto at) { return load(dy, at) * function.both(biased(x, bias, at)).slope; });
  });
}

[[gnu::flatten]] void gated(Activation f, Out y, In x, const float* bias, std::int64_t n) {
  const In up = second_half(x, n);
  const float* up_bias = bias ? bias + n : nullptr;
  with(f, [&](auto function) {
    map(y, walk_of(y.type, x.type), n,
        [&](auto at) { return function.value(biased(x, bias, at)) * biased(up, up_bias, at); });
  });
}

[[gnu::flatten]] void gated_backward(Activation f, Out dx, In dy, In x, const float* bias, std::int64_t n) {
  const In up = second_half(x, n);
  const Outs<2> both = {{dx, second_half(dx, n)}};
  const float* up_bias = bias ? bias + n : nullptr;
  with(f, [&](auto function) {
    map(both, walk_of(dx.type, dy.type, x.type), n, [&](auto at) {
      const Both gate = function.both(biased(x, bias, at));
      const F d = load(dy, at);
      return Values<2>{{d * biased(up, up_bias, at) * gate.slope, d * gate.value}};
    });
  });
}

}  // namespace

extern const ActivationLoops activations;
const ActivationLoops activations = {
    .forward = forward, .backward = backward, .gated = gated, .gated_backward = gated_backward};

}  // namespace weft::fast::WEFT_ISA
