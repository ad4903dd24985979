// Pointwise functions and their derivatives, alone and as gates.
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

struct Identity {
  static F value(F x) { return x; }
  static F slope(F) { return all(1.0F); }
};

// x (1 + tanh u) / 2 = x sigmoid(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3)
struct Gelu {
  static F inner(F x) { return x * fused(all(0.0713548163F), x * x, all(1.595769122F)); }
  static F value(F x) { return x * sigmoid(inner(x)); }
  static F slope(F x) {
    const F s = sigmoid(inner(x));
    return fused(x * (s * (all(1.0F) - s)), fused(all(0.2140644488F), x * x, all(1.595769122F)), s);
  }
};

// x Phi(x)
struct GeluErf {
  static F value(F x) { return x * normal_share(x); }
  static F slope(F x) {
    return normal_share(x) + x * (all(0.3989422804F) * exponential(all(-0.5F) * (x * x)));
  }
};

struct QuickGelu {
  static F value(F x) { return x * sigmoid(all(1.702F) * x); }
  static F slope(F x) {
    const F s = sigmoid(all(1.702F) * x);
    return s + all(1.702F) * x * (s * (all(1.0F) - s));
  }
};

struct Silu {
  static F value(F x) { return x * sigmoid(x); }
  static F slope(F x) {
    const F s = sigmoid(x);
    return s + x * (s * (all(1.0F) - s));
  }
};

// Written so that NaN stays NaN.
struct Relu {
  static F value(F x) { return choose(x < all(0.0F), all(0.0F), x); }
  static F slope(F x) { return choose(all(0.0F) < x, all(1.0F), all(0.0F)); }
};

struct SquaredRelu {
  static F value(F x) { return square(Relu::value(x)); }
  static F slope(F x) {
    const F positive = Relu::value(x);
    return positive + positive;
  }
};

struct Tanh {
  static F value(F x) { return hyperbolic_tangent(x); }
  static F slope(F x) { return all(1.0F) - square(hyperbolic_tangent(x)); }
};

struct Sigmoid {
  static F value(F x) { return sigmoid(x); }
  static F slope(F x) {
    const F s = sigmoid(x);
    return s * (all(1.0F) - s);
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
  return bias ? in + load(bias, at) : in;
}

In second_half(In x, std::int64_t n) {
  const std::int64_t size = x.type == Type::f32 ? 4 : 2;
  return {static_cast<const char*>(x.from) + n * size, x.type};
}
Out second_half(Out x, std::int64_t n) {
  const std::int64_t size = x.type == Type::f32 ? 4 : 2;
  return {static_cast<char*>(x.to) + n * size, x.type, x.past};
}

void forward(Activation f, Out y, In x, const float* bias, std::int64_t n) {
  with(f,
       [&](auto function) { each(n, [&](auto at) { store(y, at, function.value(biased(x, bias, at))); }); });
}

void backward(Activation f, Out dx, In dy, In x, const float* bias, std::int64_t n) {
  with(f, [&](auto function) {
    each(n, [&](auto at) { store(dx, at, load(dy, at) * function.slope(biased(x, bias, at))); });
  });
}

void gated(Activation f, Out y, In x, const float* bias, std::int64_t n) {
  const In up = second_half(x, n);
  const float* up_bias = bias ? bias + n : nullptr;
  with(f, [&](auto function) {
    each(n, [&](auto at) { store(y, at, function.value(biased(x, bias, at)) * biased(up, up_bias, at)); });
  });
}

void gated_backward(Activation f, Out dx, In dy, In x, const float* bias, std::int64_t n) {
  const In up = second_half(x, n);
  const Out dup = second_half(dx, n);
  const float* up_bias = bias ? bias + n : nullptr;
  with(f, [&](auto function) {
    each(n, [&](auto at) {
      const F gate = biased(x, bias, at);
      const F d = load(dy, at);
      const F open = biased(up, up_bias, at);
      store(dup, at, d * function.value(gate));
      store(dx, at, d * open * function.slope(gate));
    });
  });
}

}  // namespace

extern const ActivationLoops activations;
const ActivationLoops activations = {
    .forward = forward, .backward = backward, .gated = gated, .gated_backward = gated_backward};

}  // namespace weft::fast::WEFT_ISA
