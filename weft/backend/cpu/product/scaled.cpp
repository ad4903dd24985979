#include "weft/backend/cpu/product/scaled.h"

#include <algorithm>
#include <array>

#include "weft/backend/cpu/fast/parallel.h"
#include "weft/tensor/f8_blocks.h"
#include "weft/tensor/f8_rounding.h"

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

struct BlockInverses {
  F8Grid grid;
  const float* numbers;           // or
  const std::uint8_t* exponents;  // of lines of 32
  float of(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = grid.place(row, column);
    return exponents ? power_of_exponent(exponents[at]) : numbers[at];
  }
};

void widen_blocks(const Tensor& to, const Tensor& from, const Tensor& inverses, F8Blocks blocks,
                  int threads) {
  const auto wide = from.dtype() == Dtype::f8e4m3 ? table<f8e4m3>() : table<f8e5m2>();
  const auto* codes = static_cast<const std::uint8_t*>(from.address());
  bf16* const out = to.data<bf16>();
  const bool in_exponents = inverses.dtype() == Dtype::u8;
  const BlockInverses by{{blocks, from.dim(0), from.dim(1)},
                         in_exponents ? nullptr : inverses.data<float>(),
                         in_exponents ? inverses.data<std::uint8_t>() : nullptr};
  const std::int64_t k = to.dim(1), line = by.grid.line();
  fast::in_parallel(threads, to.dim(0), to.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t j = 0; j < k; j += line) {
        const float inverse = by.of(i, j);
        for (std::int64_t at = i * k + j; at < i * k + std::min(k, j + line); ++at)
          out[at] = bf16(float(wide[codes[at]]) * inverse);
      }
  });
}

void widen_any(const Tensor& to, const Tensor& from, const Tensor& inverses, F8Blocks blocks, int threads) {
  if (blocks == F8Blocks::whole)
    widen_rows(to, from, threads);
  else
    widen_blocks(to, from, inverses, blocks, threads);
}

/// What out becomes of sums [m, n]; bias [n] may be null.
template <class Out, class Bias>
struct Finish {
  const ScaledArgs& how;
  float inverse = how.in_blocks() ? 1.0F : how.a_inverse.as<float>()[0] * how.b_inverse.as<float>()[0];
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

void widen(const InBf16& into, const Tensor& a, const Tensor& b, const ScaledArgs& how, int threads) {
  widen_any(into.a, a, how.a_inverse, how.a_blocks, threads);
  widen_any(into.b, b, how.b_inverse, how.b_blocks, threads);
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
