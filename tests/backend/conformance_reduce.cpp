// Sums and searches. Exact sums must agree in every bit, whoever computes them.
#include <cmath>
#include <limits>

#include "tests/backend/conformance.h"
#include "weft/tensor/exact_sum.h"

namespace weft::conformance {
namespace {

const std::vector<Shape> shapes{{1}, {63}, {5000}, {3, 70}, {4, 3, 17}, {0}, {0, 5}};

Tensor digits(Desk& desk) {
  desk.lay(Lay::contiguous);
  return desk.holding({exact_digits}, Dtype::f64, std::vector<double>(exact_digits, 0));
}

TEST_P(Conformance, sums_numbers_of_any_type) {
  for (const Shape& shape : shapes)
    for (const Dtype dtype : floats)
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal(shape, dtype);
        desk.lay(Lay::contiguous);
        const Tensor out = desk.blank({1}, Dtype::f64);
        desk.kernels().sum(out, x);
        desk.result("sum", out, {1e-12, 1e-12 * double(shape.elements())});
      });
  same([&](Desk& desk) {
    const Tensor out = desk.blank({1}, Dtype::f64);
    desk.kernels().sum(out, desk.integers({77}, Dtype::i64, 0, 1000000));
    desk.result("of integers", out, exactly);
  });
}

TEST_P(Conformance, sums_exactly) {
  for (const Shape& shape : shapes)
    for (const Dtype dtype : floats)
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.normal(shape, dtype);
        const Tensor sum = digits(desk);
        desk.kernels().sum_exact(sum, x);
        desk.result("sum", sum, exactly);
        desk.kernels().sum_squares(sum, x);
        desk.result("and squares", sum, exactly);
      });
}

TEST_P(Conformance, sums_exactly_over_the_whole_range_of_f32) {
  same([&](Desk& desk) {
    const auto least = double(std::numeric_limits<float>::denorm_min());
    const auto most = double(std::numeric_limits<float>::max());
    std::vector<double> values;
    for (int e = -149; e < 128; ++e)
      values.push_back((e % 2 ? -1 : 1) * std::ldexp(1.0 + (e > -120 ? 0x1p-23 : 0), e));
    values.insert(values.end(), {least, most, -least, -most, most, most, least, 0, -0.0});
    const Tensor x = desk.holding({std::int64_t(values.size())}, Dtype::f32, values);
    const Tensor sum = digits(desk);
    desk.kernels().sum_exact(sum, x);
    desk.result("sum", sum, exactly);
    const Tensor squares = digits(desk);
    desk.kernels().sum_squares(squares, x);
    desk.result("squares", squares, exactly);
  });
}

TEST_P(Conformance, passes_on_what_is_not_finite) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::nan("")})
    for (const Dtype dtype : floats)
      same([&](Desk& desk) {
        std::vector<double> values(100, 0.5);
        values[70] = bad;
        values[90] = bad;
        const Tensor x = desk.holding({100}, dtype, values);
        const Tensor squares = digits(desk);
        desk.kernels().sum_squares(squares, x);
        desk.result("squares", squares.slice(0, exact_digits - 1, 1), exactly);
        const Tensor greatest = desk.blank({1}, Dtype::f64);
        desk.kernels().max_abs(greatest, x);
        desk.result("greatest", greatest, exactly);
        const Tensor found = desk.blank({1}, Dtype::i64);
        desk.kernels().find_nonfinite(found, x);
        desk.result("found", found, exactly);
      });
}

/// Digits of n sums as ranks' sums are before they are carried, of either sign but for the highest. The first
/// sums are zero, two of the later ones not finite.
std::vector<double> uncarried(std::int64_t n) {
  std::vector<double> out(std::size_t(n * exact_digits));
  std::uint64_t noise = 1;
  for (std::size_t sum = 3; sum < std::size_t(n); ++sum) {
    const std::size_t highest = 6 + sum % 11;
    for (std::size_t digit = 0; digit < highest; ++digit) {
      noise = noise * 6364136223846793005U + 1442695040888963407U;
      out[sum * exact_digits + digit] = double(std::int64_t(noise) >> 29);
    }
    out[sum * exact_digits + highest] = 9;
  }
  if (n > 20) {
    out[20 * exact_digits - 1] = std::numeric_limits<double>::infinity();
    out[21 * exact_digits - 1] = std::nan("");
  }
  return out;
}

// Roots and quotients are those of IEEE, so every bit is the oracle's.
TEST_P(Conformance, divides_norms) {
  for (const std::int64_t each : {1, 2})
    for (const std::int64_t n : {0, 1, 185})
      same([&](Desk& desk) {
        const Tensor digits = desk.holding({n, each, exact_digits}, Dtype::f64, uncarried(n * each));
        const Tensor out = desk.blank({n});
        desk.kernels().norm_ratios(out, digits, {});
        desk.result("ratios", out, exactly);
        desk.kernels().norm_ratios(out, digits, {.least = 0.5, .most = 3, .of_zero = 0});
        desk.result("within limits", out, exactly);
      });
}

TEST_P(Conformance, searches) {
  for (const Shape& shape : shapes)
    for (const Dtype dtype : floats)
      same_however_it_lies([&](Desk& desk) {
        const Tensor x = desk.integers(shape, dtype, -3, 4);
        desk.lay(Lay::contiguous);
        const Tensor greatest = desk.blank({1}, Dtype::f64);
        desk.kernels().max_abs(greatest, x);
        desk.result("greatest", greatest, exactly);
        const Tensor whole = desk.blank({1}, Dtype::i64);
        desk.kernels().find_nonfinite(whole, x);
        desk.result("found", whole, exactly);
        desk.kernels().count_zeros(whole, x);
        desk.result("zeros", whole, exactly);
      });
}

}  // namespace
}  // namespace weft::conformance
