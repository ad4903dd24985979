// Derivatives by differences: what a backward must agree with.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "weft/tensor/host.h"

namespace weft {

/// <probe, y>: one number that every element of y has a part in, so that one derivative tests them all.
inline double probed(const Tensor& probe, const Tensor& y) {
  const std::vector<double> a = numbers(probe);
  const std::vector<double> b = numbers(y);
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += a.at(i) * b[i];
  return sum;
}

/// The slope of f, which reads `element`, along it, by central differences of fourth order. With h = 1/32 the
/// f32 results that f reads are known to about 1e-6 of their size.
inline double slope_along(float& element, const std::function<double()>& f, double h = 0x1p-5) {
  const float before = element;
  const auto at = [&](double step) {
    element = static_cast<float>(double(before) + step);
    return f();
  };
  const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  element = before;
  return slope;
}

/// Along every element of x, which is f32.
inline std::vector<double> slopes(const Tensor& x, const std::function<double()>& f, double h = 0x1p-5) {
  std::vector<double> out;
  for (float& element : x.as<float>()) out.push_back(slope_along(element, f, h));
  return out;
}

}  // namespace weft
