// A sample's numbers are a matrix of steps and channels.
#include "weft/nn/router_noise.h"

#include "weft/ops/random.h"
#include "weft/tensor/host.h"

namespace weft {

Tensor noise_for(const Pass& pass, const NoiseShape& shape, const NoiseKind& kind, Device& device) {
  const Tensor& samples = pass.batch().samples;
  const Tensor out = empty(device, {shape.steps, samples.dim(0), shape.width});
  const bool jitter = kind.what == Noise::jitter;
  Address at = pass.address(Purpose::routing, 2 * kind.layer + (jitter ? 0 : 1));
  std::vector<std::int64_t> numbers(std::size_t(samples.dim(0)));
  if (device.holds_numbers()) numbers = to_host<std::int64_t>(samples);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    at.sample = std::uint64_t(numbers[i]);
    const Tensor one = out.at(1, std::int64_t(i));
    const RandomBlock block{.at = at, .columns = shape.width};
    if (jitter)
      ops::random_uniform_into(one, 1 - kind.most, 1 + kind.most, block);
    else
      ops::random_normal_into(one, 0, 1, block);
  }
  return out;
}

}  // namespace weft
