// A device with the reference kernels, and operands for tests of ops.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/gradient.h"
#include "tests/support/numbers.h"
#include "tests/support/refused.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"

namespace weft {

class Ops : public ::testing::Test {
 protected:
  Device& device() { return *device_; }

  /// Uniform in [-width, width), the same in every run.
  Tensor random(const Shape& shape, Dtype dtype = Dtype::f32, double width = 1) {
    const Draw draw({.seed = 1, .purpose = Purpose::test, .step = operands_++});
    std::vector<double> values(std::size_t(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = width * (2 * double(draw.uniform(i)) - 1);
    return of(device(), shape, dtype, values);
  }
  Tensor holding(const Shape& shape, const std::vector<double>& values, Dtype dtype = Dtype::f32) {
    return of(device(), shape, dtype, values);
  }
  Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32) {
    return holding(shape, std::vector<double>(std::size_t(shape.elements())), dtype);
  }
  Tensor integers(const Shape& shape, const std::vector<double>& values) {
    return holding(shape, values, Dtype::i32);
  }

 private:
  std::unique_ptr<Device> device_ = open_device("cpu:reference");
  std::uint64_t operands_ = 0;
};

/// Results in f32 of sums in double.
inline constexpr Tolerance f32_near{1e-6, 1e-6};
/// Derivatives by differences.
inline constexpr Tolerance slope_near{2e-4, 5e-5};

}  // namespace weft
