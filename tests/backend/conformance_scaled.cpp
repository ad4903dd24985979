// Eight bits: codes must agree in every bit, products to the order of their sums.
#include <cmath>
#include <limits>

#include "tests/backend/conformance.h"
#include "tests/support/sanitized.h"

namespace weft::conformance {
namespace {

constexpr std::array<Dtype, 2> eights{Dtype::f8e4m3, Dtype::f8e5m2};

std::int64_t in_units(std::int64_t size) { return (size + f8_unit - 1) / f8_unit * f8_unit; }

/// Codes of x as they lie and turned, and the greatest.
void round(Desk& desk, const Tensor& x, Dtype dtype, double scale) {
  desk.lay(Lay::contiguous);
  const std::int64_t r = in_units(x.dim(0)), c = in_units(x.dim(1));
  const Quantized out{desk.blank({r, c}, dtype), desk.blank({c, r}, dtype)};
  const Tensor by = desk.holding({1}, Dtype::f32, {scale}), met = desk.holding({1}, Dtype::f32, {0.25});
  desk.kernels().quantize(out, x, by, met);
  desk.result("codes", out.codes, exactly);
  desk.result("turned", out.turned, exactly);
  desk.result("met", met, exactly);
  const Quantized alone{desk.blank({r, c}, dtype), {}}, turned{{}, desk.blank({c, r}, dtype)};
  desk.kernels().quantize(alone, x, by, {});
  desk.kernels().quantize(turned, x, by, {});
  desk.result("codes alone", alone.codes, exactly);
  desk.result("turned alone", turned.turned, exactly);
  const Tensor greatest = desk.holding({1}, Dtype::f32, {0});
  desk.kernels().quantize({}, x, {}, greatest);
  desk.result("met alone", greatest, exactly);
  const Tensor before = desk.holding({1}, Dtype::f32, {1e6});
  desk.kernels().quantize({}, x, {}, before);
  desk.result("met before", before, exactly);
}

// Of deviation 40 and scale 7.3 some are too large for e4m3, and all sizes of numbers meet denormals.
TEST_P(Conformance, rounds_to_eight_bits_however_it_lies) {
  for (const Shape& shape : {Shape{1, 1}, Shape{16, 16}, Shape{33, 70}, Shape{130, 66}, Shape{64, 200}})
    for (const Dtype dtype : floats)
      for (const Dtype eight : eights)
        same_however_it_lies([&](Desk& desk) { round(desk, desk.normal(shape, dtype, 40), eight, 7.3); });
}

TEST_P(Conformance, rounds_denormals_and_what_is_too_large_or_not_finite) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values{0,       -0.0,    447,     448,       449,      464,       465,
                             480,     1e9,     -1e9,    57344,     61440,    61441,     1e30,
                             3e38,    -3e38,   0x1p-6,  0x1.8p-10, 0x1p-9,   0x1p-10,   0x3p-11,
                             0x1p-14, 0x1p-16, 0x1p-17, 0x3p-18,   1e-30,    1e-45,     1.0625,
                             1.125,   1.1875,  17,      19,        infinity, -infinity, std::nan("")};
  const auto count = std::int64_t(values.size());
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const Dtype eight : eights)
      for (const double scale : {1.0, 0x1p40, 1e-3})
        same([&](Desk& desk) { round(desk, desk.holding({1, count}, dtype, values), eight, scale); });
}

struct Sizes {
  std::int64_t m, n, k;
};

Tensor codes(Desk& desk, std::int64_t rows, std::int64_t k, Dtype dtype) {
  std::vector<double> values(std::size_t(in_units(rows) * in_units(k)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = double(i * 7 % 31) - 15;
  return desk.holding({in_units(rows), in_units(k)}, dtype, values);
}

TEST_P(Conformance, multiplies_eight_bits) {
  const std::vector<Sizes> all{{33, 50, 70}, {16, 16, 16}, {1, 1, 1}, {64, 96, 400}};
  for (const Sizes& s : testing::some_of(all, 2))
    for (const Dtype dtype : floats)
      for (const auto& [a, b] : {std::pair{eights[0], eights[0]}, std::pair{eights[1], eights[0]},
                                 std::pair{eights[0], eights[1]}})
        for (const Lay lay : {Lay::contiguous, Lay::gaps})
          for (const bool accumulate : {false, true})
            same([&, a = a, b = b](Desk& desk) {
              const Tensor left = codes(desk, s.m, s.k, a), right = codes(desk, s.n, s.k, b);
              // Scales lie beside each other, as those of a model do.
              const Tensor scales = desk.holding({3}, Dtype::f32, {9, 0.037, 0.11});
              const Tensor over_a = scales.slice(0, 1, 1), over_b = scales.slice(0, 2, 1);
              desk.lay(lay);
              const Tensor out = desk.normal({s.m, s.n}, dtype), biased = desk.normal({s.m, s.n}, dtype);
              desk.lay(Lay::contiguous);
              desk.kernels().scaled_matmul(out, left, right, {over_a, over_b, {}, accumulate});
              desk.kernels().scaled_matmul(biased, left, right,
                                           {over_a, over_b, desk.normal({s.n}, dtype), accumulate});
              const Tolerance within = close(dtype, s.k, 225 * 0.037 * 0.11);
              desk.result("out", out, within);
              desk.result("with a bias", biased, within);
            });
}

TEST_P(Conformance, renews_scales) {
  for (const Dtype eight : eights)
    for (const int margin : {0, 3, -2})
      for (const bool of_window : {false, true})
        same([&](Desk& desk) {
          // Met now, never, long ago alone, almost nothing, and a little less than nothing can be divided by.
          const Tensor rows =
              desk.holding({1, 5, 5}, Dtype::f32, {3, 1. / 3, 7, 2, 9,     5, 0.2, 0, 0, 0,     6, 1. / 6, 0,
                                                   0, 4,      1, 1, 1e-44, 0, 0,   1, 1, 3e-38, 0, 1e-3});
          for (int step = 0; step < 2; ++step) {
            desk.kernels().renew_scales(rows, {.dtype = eight, .margin = margin, .of_window = of_window});
            desk.result("rows", rows, exactly);
          }
          const Tensor part = desk.holding({4, 3, 4}, Dtype::f32, std::vector<double>(48, 2)).slice(1, 1, 2);
          desk.kernels().renew_scales(part, {.dtype = eight, .margin = margin, .of_window = of_window});
          desk.result("some of each", part, exactly);
        });
}

}  // namespace
}  // namespace weft::conformance
