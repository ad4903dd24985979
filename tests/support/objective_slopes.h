// Whether the gradients of a tiny model that has trained a step are slopes of its objective.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/support/gradient.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny.h"

namespace weft::testing {

/// Of matrices every thirtieth row by a probe would cost more: one direction through all parameters. The
/// slope may be off by a hundredth of itself, and by so much besides.
inline void expect_a_random_direction(TinyModel& model, const std::function<double()>& objective,
                                      double besides = 0) {
  double slope = 0;
  const auto go = [&](float h, bool adds) {
    std::uint32_t number = 0;
    model.stage().each_parameter([&](Parameter& p) {
      const Draw draw({.seed = 11, .purpose = Purpose::test, .layer = number++});
      const std::vector<double> grad = numbers(p.grad.sum());
      for (std::size_t i = 0; i < grad.size(); ++i) {
        if (adds) slope += double(draw.normal(i)) * grad[i];
        p.value.as<float>()[i] += h * draw.normal(i);
      }
    });
  };
  go(0, true);
  constexpr float h = 1e-3F;
  go(h, false);
  const double up = objective();
  go(-2 * h, false);
  const double down = objective();
  go(h, false);
  EXPECT_NEAR((up - down) / (2 * double(h)), slope, 1e-2 * std::abs(slope) + besides);
}

/// Of a vector, whose gradient this is.
inline void expect_elements(const Parameter& p, const std::vector<double>& grad,
                            const std::function<double()>& objective) {
  double most = 0;
  for (const double g : grad) most = std::max(most, std::abs(g));
  for (std::size_t i = 0; i < grad.size(); i += std::size_t(every(6)))
    EXPECT_NEAR(grad[i], slope_along(p.value.as<float>()[i], objective), 4e-3 * most + 2e-4)
        << p.name << " element " << i;
}

}  // namespace weft::testing
