// Activations and their derivatives, alone and gated.
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft {
namespace {

using namespace cuda;

/// A function at one point, and its slope there.
struct Point {
  float value, slope;
};

/// sigmoid(x) and sigmoid(-x), from one power and one reciprocal: a thread's instructions must not take
/// longer than its memory.
struct Sigmoids {
  float here, rest;
};
__device__ __forceinline__ Sigmoids sigmoids(float x) {
  const float power = gpu::power_of_two(-log2_e * x), here = gpu::divide(1, 1 + power);
  return {here, here == 0 ? 1 : power * here};
}

// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
__device__ __forceinline__ Point gelu(float x) {
  constexpr float c = 0.7978845608028654F, third = 0.044715F;
  const float square = x * x, around = x * c * 2;
  const auto [s, rest] = sigmoids(around * (1 + third * square));
  return {x * s, s + (s * rest == 0 ? 0.0F : s * rest * around * (1 + 3 * third * square))};
}

// x Phi(x)
__device__ __forceinline__ Point gelu_erf(float x) {
  const float phi = 0.5F * erfcf(x * -0.7071067811865476F);
  return {x * phi, phi + x * expf(-0.5F * x * x) * 0.3989422804014327F};
}

// x sigmoid(a x)
__device__ __forceinline__ Point swish(float x, float a) {
  const auto [s, rest] = sigmoids(a * x);
  return {x * s, s + a * x * s * rest};
}

/// Calls act(a function of x that gives a Point): which one is asked once for all that a thread does.
template <class Act>
__device__ __forceinline__ void with_function(Activation kind, const Act& act) {
  switch (kind) {
    case Activation::identity:
      return act([](float x) { return Point{x, 1}; });
    case Activation::gelu:
      return act([](float x) { return gelu(x); });
    case Activation::gelu_erf:
      return act([](float x) { return gelu_erf(x); });
    case Activation::quick_gelu:
      return act([](float x) { return swish(x, 1.702F); });
    case Activation::silu:
      return act([](float x) { return swish(x, 1); });
    case Activation::relu:
      return act([](float x) { return x > 0 ? Point{x, 1} : Point{0 * x, 0}; });
    case Activation::squared_relu:
      return act([](float x) { return x > 0 ? Point{x * x, 2 * x} : Point{0 * x, 0}; });
    case Activation::tanh:
      return act([](float x) {
        const auto [s, rest] = sigmoids(2 * x);
        return Point{tanhf(x), 4 * s * rest};
      });
    case Activation::sigmoid:
      return act([](float x) {
        const auto [s, rest] = sigmoids(x);
        return Point{s, s * rest};
      });
  }
}

/// What a pass does to its elements, where the function is one of several (pointwise.h).
struct Alone {
  Activation kind;
  template <class Each>
  __device__ __forceinline__ void for_all(const Each& each) const {
    with_function(kind, [&](const auto& at) {
      each([&](const float(&in)[2], float(&out)[1]) { out[0] = at(in[0] + in[1]).value; });
    });
  }
};
struct AloneBackward {
  Activation kind;
  template <class Each>
  __device__ __forceinline__ void for_all(const Each& each) const {
    with_function(kind, [&](const auto& at) {
      each([&](const float(&in)[3], float(&out)[1]) { out[0] = in[2] * at(in[0] + in[1]).slope; });
    });
  }
};
/// x, but at most the limit; none where x is no number, which the instruction for the lesser of two would
/// hide.
__device__ __forceinline__ float below(float limit, float x) { return x > limit ? limit : x; }
struct Gated {
  Gate kind;
  template <class Each>
  __device__ __forceinline__ void for_all(const Each& each) const {
    with_function(kind.f, [&](const auto& at) {
      each([&](const float(&in)[4], float(&out)[1]) {
        const float gate = below(kind.limit, in[0] + in[2]), up = in[1] + in[3];
        out[0] = at(gate).value * (-below(kind.limit, -below(kind.limit, up)) + kind.offset);
      });
    });
  }
};
struct GatedBackward {
  Gate kind;
  template <class Each>
  __device__ __forceinline__ void for_all(const Each& each) const {
    with_function(kind.f, [&](const auto& at) {
      each([&](const float(&in)[5], float(&out)[2]) {
        const float gate = in[0] + in[2], up = in[1] + in[3];
        const Point there = at(below(kind.limit, gate));
        const float let = -below(kind.limit, -below(kind.limit, up)) + kind.offset;
        out[0] = gate > kind.limit ? 0.0F : in[4] * let * there.slope;
        out[1] = up > kind.limit || up < -kind.limit ? 0.0F : in[4] * there.value;
      });
    });
  }
};

/// Gate and up, of x or its bias.
struct Halves {
  Rows gate, up;
};
Halves halves_of(const Tensor& x) {
  const std::int64_t f = x.dim(-1) / 2;
  return {rows_of(x.slice(-1, 0, f)), rows_of(x.slice(-1, f, f))};
}
Halves bias_halves(const Tensor& bias, const Halves& x) {
  if (!bias) return {};
  const std::int64_t f = bias.dim(0) / 2;
  return {for_every_row(bias.slice(0, 0, f), x.gate.count), for_every_row(bias.slice(0, f, f), x.gate.count)};
}

}  // namespace

void CudaKernels::activation(const Tensor& y, const Tensor& x, const Tensor& bias, Activation kind) {
  const Rows from = rows_of(x);
  run_pass<1, 2>(queue(), {rows_of(y)}, {from, for_every_row(bias, from.count)}, Alone{kind});
}

void CudaKernels::activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                      Activation kind) {
  const Rows from = rows_of(x);
  run_pass<1, 3>(queue(), {rows_of(dx)}, {from, for_every_row(bias, from.count), rows_of(dy)},
                 AloneBackward{kind});
}

void CudaKernels::gated(const Tensor& y, const Tensor& x, const Tensor& bias, const Gate& gate) {
  const Halves from = halves_of(x), more = bias_halves(bias, from);
  run_pass<1, 4>(queue(), {rows_of(y)}, {from.gate, from.up, more.gate, more.up}, Gated{gate});
}

void CudaKernels::gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                 const Gate& gate) {
  const Halves from = halves_of(x), to = halves_of(dx), more = bias_halves(bias, from);
  run_pass<2, 5>(queue(), {to.gate, to.up}, {from.gate, from.up, more.gate, more.up, rows_of(dy)},
                 GatedBackward{gate});
}

}  // namespace weft
