#include "weft/nn/router_noise.h"

#include "weft/ops/random.h"

namespace weft {

Tensor noise_for(const Pass& pass, const NoiseShape& shape, const NoiseKind& kind, Device& device) {
  const std::vector<std::int64_t>& numbers = pass.batch().sample_numbers;
  const Tensor out = empty(device, {shape.steps, std::int64_t(numbers.size()), shape.width});
  const bool jitter = kind.what == Noise::jitter;
  Address at = pass.address(Purpose::routing, 2 * kind.layer + (jitter ? 0 : 1));
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
