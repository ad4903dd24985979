#include "weft/backend/cpu/product/scaled.h"

#include <array>

#include "weft/backend/cpu/fast/parallel.h"

namespace weft::product {
namespace {

template <class F8>
std::array<bf16, 256> table() {
  std::array<bf16, 256> out;
  for (std::size_t code = 0; code < 256; ++code) out[code] = bf16(float(F8::from_bits(std::uint8_t(code))));
  return out;
}

void widen_rows(const Tensor& to, const Tensor& from, int threads) {
  const auto wide = from.dtype() == Dtype::f8e4m3 ? table<f8e4m3>() : table<f8e5m2>();
  const auto* codes = static_cast<const std::uint8_t*>(from.address());
  bf16* const out = to.data<bf16>();
  const std::int64_t k = to.dim(1);
  fast::in_parallel(threads, to.dim(0), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first * k; i < last * k; ++i) out[i] = wide[codes[i]];
  });
}

/// What out becomes of sums [m, n]; bias [n] may be null.
template <class Out, class Bias>
struct Finish {
  const ScaledArgs& how;
  float inverse = how.a_inverse.as<float>()[0] * how.b_inverse.as<float>()[0];
  const Bias* bias = how.bias ? how.bias.data<Bias>() : nullptr;
  std::int64_t step = how.bias ? how.bias.stride(0) : 0;

  void row(Out* to, const float* sums, std::int64_t n) const {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = sums[j] * inverse;
      if (how.accumulate) sum += float(to[j]);
      if (bias) sum += float(bias[j * step]);
      to[j] = Out(sum);
    }
  }
};

}  // namespace

InBf16 in_bf16(const Tensor& out, const Tensor& a) {
  Device& device = out.device();
  const std::int64_t m = out.dim(0), n = out.dim(1), k = a.dim(1);
  return {empty(device, {m, k}, Dtype::bf16, Use::workspace),
          empty(device, {n, k}, Dtype::bf16, Use::workspace),
          empty(device, {m, n}, Dtype::f32, Use::workspace)};
}

void widen(const InBf16& into, const Tensor& a, const Tensor& b, int threads) {
  widen_rows(into.a, a, threads);
  widen_rows(into.b, b, threads);
}

void finish(const Tensor& out, const Tensor& sums, const ScaledArgs& how, int threads) {
  const std::int64_t n = out.dim(1);
  const auto in_types = [&]<class Out, class Bias>() {
    const Finish<Out, Bias> finish{how};
    fast::in_parallel(threads, out.dim(0), out.elements(), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        finish.row(out.data<Out>() + i * out.stride(0), sums.data<float>() + i * n, n);
    });
  };
  visit_float(out.dtype(), [&]<class Out>() {
    visit_float(how.bias ? how.bias.dtype() : Dtype::f32,
                [&]<class Bias>() { in_types.template operator()<Out, Bias>(); });
  });
}

}  // namespace weft::product
