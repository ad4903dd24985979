#include "weft/model/alibi.h"

#include <bit>
#include <cmath>
#include <cstdlib>

#include "weft/model/rotary.h"
#include "weft/tensor/host.h"

namespace weft {

std::vector<float> alibi_slopes(const ModelConfig& config) {
  const int n = config.heads, whole = int(std::bit_floor(unsigned(n)));
  const double scale = config.alibi.scaled ? attention_scale(config) : 1;
  std::vector<float> slopes;
  for (int head = 0; head < n; ++head) {
    const bool further = head >= whole;
    const double part = further ? double(2 * (head - whole) + 1) / (2 * whole) : double(head + 1) / whole;
    slopes.push_back(float(scale * std::exp2(-config.alibi.power * part)));
  }
  return slopes;
}

Tensor alibi_biases(const ModelConfig& config, const Range& heads, Device& device) {
  const std::vector<float> slopes = alibi_slopes(config);
  const std::int64_t farthest = config.sequence - 1, distances = 2 * config.sequence - 1;
  std::vector<float> biases;
  biases.reserve(std::size_t(heads.size() * distances));
  for (std::int64_t head = heads.begin; head < heads.end; ++head)
    for (std::int64_t distance = -farthest; distance <= farthest; ++distance)
      biases.push_back(-slopes[std::size_t(head)] * float(std::abs(distance)));
  return from_host(device, {heads.size(), distances}, biases, Use::weights);
}

}  // namespace weft
