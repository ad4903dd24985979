// Products in eight bits against their definition, and when scales follow from what.
#include "weft/nn/fp8.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <tuple>

#include "tests/support/compare.h"
#include "tests/support/numbers.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

class InEightBits : public ::testing::Test {
 protected:
  static constexpr std::int64_t t = 6, in = 20, out = 10;

  Fp8 rules(Fp8Scaling scaling, std::int64_t remembers = 1) {
    Fp8 fp8{.name = "a", .rules = {.scaling = scaling, .remembers = remembers}, .scales = {}};
    fp8.scales = ops::zeros(*device_, {fp8_operands, 2 + remembers});
    ops::fill(fp8.scales.slice(1, 0, 2), 1);
    return fp8;
  }
  /// Around zero, up to width.
  Tensor random(const Shape& shape, double width) {
    const Draw draw({.seed = 5, .purpose = Purpose::test, .step = operands_++});
    std::vector<double> values(std::size_t(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = width * (2 * double(draw.uniform(i)) - 1);
    return of(*device_, shape, Dtype::f32, values);
  }
  Tensor zeros(const Shape& shape) { return ops::zeros(*device_, shape); }

  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  std::uint64_t operands_ = 0;
};

struct Matrix {
  std::vector<double> values;
  std::size_t rows, columns;
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
  Matrix turned() const {
    Matrix out{std::vector<double>(values.size()), columns, rows};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) out.values[j * rows + i] = at(i, j);
    return out;
  }
};

/// What is left of x when it was rounded under its own scale.
template <class F8>
Matrix rounded(const Tensor& x) {
  Matrix out{numbers(x), std::size_t(x.dim(0)), std::size_t(x.dim(1))};
  double greatest = 0;
  for (const double value : out.values) greatest = std::max(greatest, std::abs(value));
  const float scale = largest_of(dtype_of<F8>) / float(greatest);
  for (double& value : out.values) value = double(float(scaled_to<F8>(float(value), scale))) / double(scale);
  return out;
}

/// a b^T
std::vector<double> product(const Matrix& a, const Matrix& b) {
  std::vector<double> out;
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < b.rows; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * b.at(j, k);
      out.push_back(sum);
    }
  return out;
}

void expect_near(const Tensor& found, const std::vector<double>& expected) {
  EXPECT_EQ(difference(numbers(found), expected, {.absolute = 1e-5}), "");
}

TEST_F(InEightBits, multiplies_each_tensor_under_a_scale_of_its_own) {
  const Fp8 fp8 = rules(Fp8Scaling::tensorwise);
  const Tensor x = random({t, in}, 3), w = random({out, in}, 0.1), dy = random({t, out}, 1e-3);
  const Tensor y = zeros({t, out}), dx = zeros({t, in}), dw = zeros({out, in});
  fp8_product_into(fp8, y, x, w, {});
  expect_near(y, product(rounded<f8e4m3>(x), rounded<f8e4m3>(w)));
  fp8_input_grad_into(fp8, dx, fp8_grad(fp8, dy, Fp8Back::input), w);
  expect_near(dx, product(rounded<f8e5m2>(dy), rounded<f8e4m3>(w).turned()));
  fp8_weight_grad_into(fp8, {dw}, fp8_grad(fp8, dy, Fp8Back::weight), x);
  expect_near(dw, product(rounded<f8e5m2>(dy).turned(), rounded<f8e4m3>(x).turned()));
}

// Another microbatch goes back before the first one's weight gradient is added.
TEST_F(InEightBits, a_gradient_that_is_rounded_for_both_products_keeps_its_scale) {
  const Fp8 fp8 = rules(Fp8Scaling::tensorwise);
  const Tensor x = random({t, in}, 3), w = random({out, in}, 0.1), dy = random({t, out}, 1e-3),
               next = random({t, out}, 10);
  const Tensor dx = zeros({t, in}), dw = zeros({out, in});
  const Fp8Rounded once = fp8_grad(fp8, dy, Fp8Back::both);
  fp8_input_grad_into(fp8, dx, fp8_grad(fp8, next, Fp8Back::both), w);
  expect_near(dx, product(rounded<f8e5m2>(next), rounded<f8e4m3>(w).turned()));
  fp8_input_grad_into(fp8, dx, once, w);
  expect_near(dx, product(rounded<f8e5m2>(dy), rounded<f8e4m3>(w).turned()));
  fp8_weight_grad_into(fp8, {dw}, once, x);
  expect_near(dw, product(rounded<f8e5m2>(dy).turned(), rounded<f8e4m3>(x).turned()));
}

// Small whole numbers are codes, and one more or less of each: y is linear in them, so differences are
// derivatives.
TEST_F(InEightBits, has_the_derivatives_of_its_product) {
  const Fp8 fp8 = rules(Fp8Scaling::delayed);
  const auto whole = [&](const Shape& shape, std::size_t by) {
    std::vector<double> values(std::size_t(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = double(i * by % 7) - 3;
    return of(*device_, shape, Dtype::f32, values);
  };
  const Tensor x = whole({t, in}, 3), w = whole({out, in}, 5), probe = whole({t, out}, 2);
  const Tensor dx = zeros({t, in}), dw = zeros({out, in}), y = zeros({t, out});
  const Fp8Rounded back = fp8_grad(fp8, probe, Fp8Back::both);
  fp8_input_grad_into(fp8, dx, back, w);
  fp8_weight_grad_into(fp8, {dw}, back, x);
  const std::vector<double> weights = numbers(probe);
  const auto objective = [&] {
    fp8_product_into(fp8, y, x, w, {});
    double sum = 0;
    const std::vector<double> values = numbers(y);
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
    return sum;
  };
  const auto expect_slopes = [&](const Tensor& of, const Tensor& found) {
    const std::vector<double> slopes = numbers(found);
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      float& number = of.as<float>()[i];
      number += 1;
      const double above = objective();
      number -= 2;
      const double below = objective();
      number += 1;
      EXPECT_EQ((above - below) / 2, slopes[i]) << i;
    }
  };
  expect_slopes(x, dx);
  expect_slopes(w, dw);
}

/// Rounds the block that begins at an element under a power of two.
template <class F8>
void round_block(Matrix& out, std::array<std::size_t, 2> first, std::array<std::size_t, 2> size) {
  const auto each = [&](const auto& visit) {
    for (std::size_t i = first[0]; i < std::min(out.rows, first[0] + size[0]); ++i)
      for (std::size_t j = first[1]; j < std::min(out.columns, first[1] + size[1]); ++j)
        visit(out.values[i * out.columns + j]);
  };
  double greatest = 0;
  each([&](const double& value) { greatest = std::max(greatest, std::abs(value)); });
  const double scale = std::exp2(std::floor(std::log2(double(largest_of(dtype_of<F8>)) / greatest)));
  each([&](double& value) { value = double(float(F8(float(value * scale)))) / scale; });
}

/// What is left of x when each block was rounded; height 1: a line.
template <class F8>
Matrix rounded_by(const Matrix& x, std::size_t height, std::size_t width) {
  Matrix out = x;
  for (std::size_t i = 0; i < x.rows; i += height)
    for (std::size_t j = 0; j < x.columns; j += width) round_block<F8>(out, {i, j}, {height, width});
  return out;
}

// Each product sums along the lines of its operands, which are rounded for it; squares serve both ways.
TEST_F(InEightBits, by_blocks_gradients_are_products_of_what_was_rounded_along_their_sums) {
  const std::int64_t rows = 40, wide = 200, high = 150;
  for (const auto& [scaling, line, square] :
       {std::tuple{Fp8Scaling::blockwise, 128, true}, std::tuple{Fp8Scaling::mxfp8, 32, false}}) {
    const Fp8 fp8 = rules(scaling);
    const Tensor x = random({rows, wide}, 3), w = random({high, wide}, 0.1), dy = random({rows, high}, 1e-3);
    for (const Tensor& each : {x, w, dy})  // what is small is lost beside what is not
      for (std::size_t i = 0; i < std::size_t(each.elements()); ++i)
        each.as<float>()[i] *= i % 11 == 0 ? 1.0F : 1e-5F;
    const Tensor y = zeros({rows, high}), dx = zeros({rows, wide}), dw = zeros({high, wide});
    const auto matrix = [](const Tensor& of) {
      return Matrix{numbers(of), std::size_t(of.dim(0)), std::size_t(of.dim(1))};
    };
    const auto n = std::size_t(line), tall = square ? n : 1;
    const Matrix of_x = matrix(x), of_w = matrix(w), of_dy = matrix(dy);
    fp8_product_into(fp8, y, x, w, {});
    expect_near(y, product(rounded_by<f8e4m3>(of_x, 1, n), rounded_by<f8e4m3>(of_w, tall, n)));
    const Fp8Rounded back = fp8_grad(fp8, dy, Fp8Back::both);
    fp8_input_grad_into(fp8, dx, back, w);
    expect_near(dx, product(rounded_by<f8e5m2>(of_dy, 1, n), rounded_by<f8e4m3>(of_w.turned(), tall, n)));
    fp8_weight_grad_into(fp8, {dw}, back, x);
    expect_near(dw,
                product(rounded_by<f8e5m2>(of_dy.turned(), 1, n), rounded_by<f8e4m3>(of_x.turned(), 1, n)));
  }
}

TEST_F(InEightBits, delayed_scales_meet_what_backward_multiplies_and_nothing_else) {
  const Fp8 fp8 = rules(Fp8Scaling::delayed);
  const auto met = [&] {
    const std::vector<double> all = numbers(fp8.scales);
    return std::array{all[2], all[5], all[8]};
  };
  const Tensor x = of(*device_, {1, 2}, Dtype::f32, {1, -3}),
               w = of(*device_, {1, 2}, Dtype::f32, {0.5, 0.25});
  const Tensor dy = of(*device_, {1, 1}, Dtype::f32, {-8}), y = zeros({1, 1}), d = zeros({1, 2});
  fp8_product_into(fp8, y, x, w, {});
  EXPECT_EQ(met(), (std::array{0.0, 0.0, 0.0}));
  const Fp8Rounded back = fp8_grad(fp8, dy, Fp8Back::both);
  EXPECT_EQ(met(), (std::array{0.0, 0.0, 8.0}));
  fp8_input_grad_into(fp8, d, back, w);
  EXPECT_EQ(met(), (std::array{0.0, 0.5, 8.0}));
  fp8_weight_grad_into(fp8, {d}, fp8_grad(fp8, of(*device_, {1, 1}, Dtype::f32, {-9}), Fp8Back::weight), x);
  EXPECT_EQ(met(), (std::array{3.0, 0.5, 8.0}));
}

TEST_F(InEightBits, scales_of_inputs_follow_though_no_weight_gradient_is_rounded) {
  const Fp8 fp8 = rules(Fp8Scaling::delayed);
  fp8_meet_input(fp8, of(*device_, {1, 2}, Dtype::f32, {1, -3}));
  EXPECT_EQ(numbers(fp8.scales)[2], 3);
}

}  // namespace
}  // namespace weft
