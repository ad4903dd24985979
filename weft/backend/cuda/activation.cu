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

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
__device__ __forceinline__ Point gelu(float x) {
  constexpr float c = 0.7978845608028654F;
  const float u = c * (x + 0.044715F * x * x * x);
  const float s = sigmoid(2 * u), rest = sigmoid(-2 * u);
  return {x * s, s + (s * rest == 0 ? 0.0F : 2 * x * s * rest * c * (1 + 3 * 0.044715F * x * x))};
}

// x Phi(x)
__device__ __forceinline__ Point gelu_erf(float x) {
  const float phi = 0.5F * erfcf(x * -0.7071067811865476F);
  return {x * phi, phi + x * expf(-0.5F * x * x) * 0.3989422804014327F};
}

// x sigmoid(a x)
__device__ __forceinline__ Point swish(float x, float a) {
  const float s = sigmoid(a * x), rest = sigmoid(-a * x);
  return {x * s, s + a * x * s * rest};
}

struct Evaluate {
  Activation kind;
  __device__ __forceinline__ Point operator()(float x) const {
    switch (kind) {
      case Activation::identity:
        return {x, 1};
      case Activation::gelu:
        return gelu(x);
      case Activation::gelu_erf:
        return gelu_erf(x);
      case Activation::quick_gelu:
        return swish(x, 1.702F);
      case Activation::silu:
        return swish(x, 1);
      case Activation::relu:
        return x > 0 ? Point{x, 1} : Point{0 * x, 0};
      case Activation::squared_relu:
        return x > 0 ? Point{x * x, 2 * x} : Point{0 * x, 0};
      case Activation::tanh: {
        const float t = tanhf(x), s = sigmoid(2 * x);
        return {t, 4 * s * sigmoid(-2 * x)};
      }
      case Activation::sigmoid:
        return {sigmoid(x), sigmoid(x) * sigmoid(-x)};
    }
    return {x, 1};
  }
};

struct Alone {
  Evaluate at;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    out[0] = at(in[0] + in[1]).value;
  }
};
struct AloneBackward {
  Evaluate at;
  __device__ __forceinline__ void operator()(const float (&in)[3], float (&out)[1]) const {
    out[0] = in[2] * at(in[0] + in[1]).slope;
  }
};
struct Gated {
  Evaluate at;
  __device__ __forceinline__ void operator()(const float (&in)[4], float (&out)[1]) const {
    const float gate = in[0] + in[2], up = in[1] + in[3];
    out[0] = at(gate).value * up;
  }
};
struct GatedBackward {
  Evaluate at;
  __device__ __forceinline__ void operator()(const float (&in)[5], float (&out)[2]) const {
    const float gate = in[0] + in[2], up = in[1] + in[3];
    const Point there = at(gate);
    out[0] = in[4] * up * there.slope;
    out[1] = in[4] * there.value;
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
  run_pass<1, 2>(stream(), {rows_of(y)}, {from, for_every_row(bias, from.count)}, Alone{{kind}});
}

void CudaKernels::activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                      Activation kind) {
  const Rows from = rows_of(x);
  run_pass<1, 3>(stream(), {rows_of(dx)}, {from, for_every_row(bias, from.count), rows_of(dy)},
                 AloneBackward{{kind}});
}

void CudaKernels::gated(const Tensor& y, const Tensor& x, const Tensor& bias, Activation kind) {
  const Halves from = halves_of(x), more = bias_halves(bias, from);
  run_pass<1, 4>(stream(), {rows_of(y)}, {from.gate, from.up, more.gate, more.up}, Gated{{kind}});
}

void CudaKernels::gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                 Activation kind) {
  const Halves from = halves_of(x), to = halves_of(dx), more = bias_halves(bias, from);
  run_pass<2, 5>(stream(), {to.gate, to.up}, {from.gate, from.up, more.gate, more.up, rows_of(dy)},
                 GatedBackward{{kind}});
}

}  // namespace weft
