// The best of a few tries: disturbances only ever make a machine slower.
#include "weft/backend/cpu/limits.h"

#include <algorithm>
#include <chrono>

#include "weft/tensor/kernels.h"

namespace weft {
namespace {

constexpr int tries = 5;

/// The shortest of several runs, after one that nobody counts.
template <class Act>
double seconds(Device& device, const Act& act) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int i = 0; i <= tries; ++i) {
    const auto start = Clock::now();
    act();
    device.synchronize();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (i == 1 || (i > 1 && took < best)) best = took;
  }
  return best;
}

Tensor zeros(Device& device, const Shape& shape, Dtype dtype) {
  Tensor x = empty(device, shape, dtype, Use::workspace);
  device.kernels().fill(x, 0);
  return x;
}

}  // namespace

Limits measure_limits(Device& device, Dtype dtype, const LimitSizes& sizes) {
  const auto [side, block] = sizes;
  Kernels& kernels = device.kernels();
  Limits found;
  {
    const Tensor a = zeros(device, {side, side}, dtype);
    const Tensor w = zeros(device, {side, side}, dtype);
    const Tensor out = zeros(device, {side, side}, dtype);
    found.product_flops = 2.0 * double(side) * double(side) * double(side) /
                          seconds(device, [&] { kernels.matmul(out, a, w, {}); });
  }
  const Tensor from = zeros(device, {block / size_of(dtype)}, dtype);
  const Tensor to = zeros(device, {block / size_of(dtype)}, dtype);
  found.copy_bytes = 2.0 * double(block) / seconds(device, [&] { kernels.copy(to, from); });
  return found;
}

}  // namespace weft
