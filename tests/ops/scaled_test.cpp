// Eight bits by their definition: the nearest of all 256 codes, and scales from a table made by hand.
#include "weft/ops/scaled.h"

#include <cmath>

#include "tests/ops/fixture.h"

namespace weft {
namespace {

/// The nearest number of the type, of two as near the one whose code is even; plain loops over all codes.
template <class F8>
double nearest(double x) {
  double best = 0, least = INFINITY;
  int code = 0;
  for (int i = 0; i < 256; ++i) {
    const double number = double(float(F8::from_bits(std::uint8_t(i))));
    if (!std::isfinite(number)) continue;
    const double away = std::abs(number - x);
    if (away > least || (away == least && (code % 2 == 0 || i % 2 != 0))) continue;
    best = number;
    least = away;
    code = i;
  }
  return best;
}

class Scaled : public Ops {
 public:
  Tensor one(double value) { return holding({1}, {value}); }
  Tensor rounded(const Tensor& x, Dtype dtype = Dtype::f8e4m3, double scale = 1) {
    return ops::quantize(x, dtype, ops::Turned::no, one(scale)).codes;
  }
};

/// Every number of the type, every middle of two neighbours, and what lies close to these.
template <class F8>
std::vector<double> around_all() {
  std::vector<double> out;
  for (int i = 0; i < 255; ++i) {
    const double low = double(float(F8::from_bits(std::uint8_t(i)))),
                 high = double(float(F8::from_bits(std::uint8_t(i + 1))));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = float((low + high) / 2);
    for (const float x :
         {float(low), middle, std::nextafter(middle, INFINITY), std::nextafter(middle, -INFINITY)})
      out.push_back(double(x));
  }
  for (const double x : {449.0, 463.0, 464.0, 465.0, 1e6, 60000.0, 61440.0, 1e12})
    for (const double sign : {1.0, -1.0}) out.push_back(sign * x);
  return out;
}

TEST_F(Scaled, rounds_to_the_nearest_of_all_codes_and_the_largest_beyond) {
  const auto test = [&]<class F8>() {
    const std::vector<double> x = around_all<F8>();
    const Tensor codes = rounded(holding({1, std::int64_t(x.size())}, x), dtype_of<F8>);
    const std::vector<double> found = numbers(codes);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(found[i], nearest<F8>(x[i])) << x[i];
  };
  test.operator()<f8e4m3>();
  test.operator()<f8e5m2>();
}

TEST_F(Scaled, keeps_what_is_not_finite_from_passing_for_a_number) {
  for (const Dtype dtype : {Dtype::f8e4m3, Dtype::f8e5m2})
    for (const double bad : {double(INFINITY), -double(INFINITY), std::nan("")})
      EXPECT_TRUE(std::isnan(numbers(rounded(holding({1, 1}, {bad}), dtype))[0])) << bad;
}

TEST_F(Scaled, meets_the_greatest_finite_number) {
  const Tensor met = one(2);
  ops::meet(met, holding({1, 3}, {1, -1.5, double(INFINITY)}));
  EXPECT_EQ(numbers(met)[0], 2);
  ops::meet(met, holding({1, 3}, {1, -7, std::nan("")}));
  EXPECT_EQ(numbers(met)[0], 7);
}

// By Transformer Engine's formula: largest / amax / 2^margin; a tensor of zeros keeps its scale.
TEST_F(Scaled, has_the_scales_of_a_table_made_by_hand) {
  struct Line {
    Dtype dtype;
    int margin;
    bool of_window;
    double before, now, earlier, scale;
  };
  for (const Line& l :
       {Line{Dtype::f8e4m3, 0, false, 1, 1, 8, 448}, Line{Dtype::f8e4m3, 0, true, 1, 1, 8, 56},
        Line{Dtype::f8e4m3, 2, false, 1, 1, 8, 112}, Line{Dtype::f8e5m2, 0, false, 1, 7, 8, 8192},
        Line{Dtype::f8e5m2, 1, true, 1, 7, 14, 2048}, Line{Dtype::f8e4m3, 0, false, 3, 0, 8, 3},
        Line{Dtype::f8e4m3, 0, true, 3, 0, 8, 56}, Line{Dtype::f8e4m3, 0, true, 3, 0, 0, 3},
        Line{Dtype::f8e4m3, -1, false, 1, 448, 0, 2}}) {
    const Tensor row = holding({4}, {l.before, 1 / l.before, l.now, l.earlier});
    ops::renew_scales(row, {.dtype = l.dtype, .margin = l.margin, .of_window = l.of_window});
    const std::vector<double> found = numbers(row);
    EXPECT_EQ(found[0], l.scale);
    EXPECT_EQ(found[1], double(1 / float(l.scale)));
    EXPECT_EQ(found[2], 0);
    EXPECT_EQ(found[3], l.now);
  }
}

TEST_F(Scaled, multiplies_what_was_rounded) {
  const Tensor a = random({5, 20}), b = random({7, 20}), out = zeros({5, 7});
  const double of_a = 100, of_b = 200;
  ops::scaled_matmul_into(out, rounded(a, Dtype::f8e5m2, of_a), rounded(b, Dtype::f8e4m3, of_b),
                          {one(1 / of_a), one(1 / of_b)});
  const std::vector<double> x = numbers(a), y = numbers(b), found = numbers(out);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 7; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 20; ++k)
        sum += nearest<f8e5m2>(double(float(x[i * 20 + k]) * float(of_a))) *
               nearest<f8e4m3>(double(float(y[j * 20 + k]) * float(of_b)));
      EXPECT_NEAR(found[i * 7 + j], sum / of_a / of_b, 1e-6);
    }
}

TEST_F(Scaled, refuses_what_does_not_fit) {
  const Tensor x = random({4, 4}), codes = rounded(x), out = zeros({4, 4});
  EXPECT_EQ(refused([&] { (void)rounded(x, Dtype::bf16); }), "quantize: bf16 is neither f8e4m3 nor f8e5m2");
  EXPECT_EQ(refused([&] {
              ops::scaled_matmul_into(out, x, codes, {one(1), one(1)});
            }),
            "scaled_matmul: a is f32, neither f8e4m3 nor f8e5m2");
  EXPECT_EQ(refused([&] {
              ops::scaled_matmul_into(out, zeros({4, 4}, Dtype::f8e4m3), codes, {one(1), one(1)});
            }),
            "scaled_matmul: a is [4, 4], and its sizes are no multiples of 16");
  const Tensor five = rounded(x, Dtype::f8e5m2);
  EXPECT_EQ(refused([&] {
              ops::scaled_matmul_into(out, five, five, {one(1), one(1)});
            }),
            "scaled_matmul: a and b are both f8e5m2, and no processor multiplies these");
  EXPECT_EQ(refused([&] {
              ops::scaled_matmul_into(zeros({20, 4}), codes, codes, {one(1), one(1)});
            }),
            "scaled_matmul: [16, 16] by [16, 16]^T does not give [20, 4]");
  EXPECT_EQ(refused([&] {
              ops::scaled_matmul_into(out, rounded(zeros({4, 0})), rounded(zeros({4, 0})), {one(1), one(1)});
            }),
            "scaled_matmul: a is [16, 0]: there is nothing to add up");
  EXPECT_EQ(refused([&] {
              ops::renew_scales(zeros({3, 2}), {});
            }),
            "renew_scales: rows are [3, 2], and remember nothing that was met");
  EXPECT_EQ(refused([&] {
              ops::renew_scales(zeros({3, 3}), {.dtype = Dtype::f16});
            }),
            "renew_scales: f16 is neither f8e4m3 nor f8e5m2");
}

}  // namespace
}  // namespace weft
