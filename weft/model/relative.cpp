// Half of the buckets hold one distance each, the others grow with its logarithm, in f32 as everybody has it.
#include "weft/model/relative.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

std::int32_t bucket_of(std::int64_t distance, int buckets, int farthest) {
  const int near = buckets / 2;
  if (distance < near) return std::int32_t(distance);
  const float share = std::log(float(distance) / float(near)) / float(std::log(double(farthest) / near));
  return std::min(near + std::int32_t(share * float(buckets - near)), buckets - 1);
}

}  // namespace

std::int64_t side_length(const ModelConfig& config, Side side) {
  return side == Side::text && config.decoder_layers > 0 ? config.decoder_sequence : config.sequence;
}

std::vector<std::int32_t> relative_buckets(const RelativeConfig& config, std::int64_t length, bool causal) {
  std::vector<std::int32_t> out;
  const int buckets = causal ? config.buckets : config.buckets / 2;
  for (std::int64_t ahead = 1 - length; ahead < length; ++ahead) {
    const std::int64_t distance = causal ? std::max<std::int64_t>(ahead, 0) : std::abs(ahead);
    const std::int32_t bucket = bucket_of(distance, buckets, config.farthest);
    out.push_back(!causal && ahead < 0 ? buckets + bucket : bucket);
  }
  return out;
}

}  // namespace weft
